"""Models of servers of one's own, by our own wires."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from massgen_mcp.backends.agent_types.provider_models import ProviderModels, describe_endpoint, open_wire
from massgen_mcp.config.access.agent_types import Environ
from massgen_mcp.config.access.local_servers import LocalServer, find_local_servers
from massgen_mcp.config.models.http_backends import AnyHttpBackend

if TYPE_CHECKING:
    from massgen_mcp.backends.adapter import Making
    from massgen_mcp.backends.base import Backend


class LocalServers(ProviderModels):
    async def find_servers(
        self, environ: Environ, places: Sequence[LocalServer], seconds: float | None = None
    ) -> list[LocalServer]:
        return await find_local_servers(environ, places, seconds=seconds)

    def open(self, config: AnyHttpBackend, making: "Making") -> "Backend":
        from massgen_mcp.backends.local_server import LocalServerBackend

        endpoint = describe_endpoint(config, making)
        return LocalServerBackend(config.type, endpoint, lambda asked: open_wire(config, asked, making.environ))


TYPE = LocalServers()
