"""A script in place of a model."""

from typing import TYPE_CHECKING

from massgen_mcp.config.access.agent_types import AgentType, Environ
from massgen_mcp.config.models.backends import ScriptedBackendConfig

if TYPE_CHECKING:
    from massgen_mcp.backends.adapter import Making
    from massgen_mcp.backends.base import Backend


class Scripted(AgentType[ScriptedBackendConfig]):
    name = "scripted"

    def get_vendor(self, config: ScriptedBackendConfig) -> str:
        return config.model

    def get_destination(self, config: ScriptedBackendConfig, environ: Environ) -> None:
        """Return None: it calls no provider."""

    def bound_unknown_price(self, config: ScriptedBackendConfig, environ: Environ) -> None:
        """Return None: its calls cost nothing."""

    def make_agent(self, config: ScriptedBackendConfig, making: "Making") -> "Backend":
        del making
        from massgen_mcp.backends.scripted import ScriptedBackend

        return ScriptedBackend(config)


TYPE = Scripted()
