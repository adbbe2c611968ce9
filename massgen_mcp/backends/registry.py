"""Makes the backend that an agent's config asks for, and imports no other."""

from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

from massgen_mcp.backends.adapter import MakesAgents, Making
from massgen_mcp.backends.base import Backend, ModelRequest, Part
from massgen_mcp.backends.limiter import Destination
from massgen_mcp.backends.own_loop import as_backend
from massgen_mcp.backends.redacted import RedactedBackend
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.access.key_hosts import describe_refusal
from massgen_mcp.config.access.members import destination, member_of, refused_keys, require_parts
from massgen_mcp.config.models.backends import BackendConfig, InstalledBackendConfig
from massgen_mcp.errors import BackendError
from massgen_mcp.redaction import Redactor


def make_backend(
    config: BackendConfig,
    environ: Mapping[str, str],
    private: Path | None = None,
    redactor: Redactor | None = None,
) -> Backend:
    """Make the backend for `config`, with its key out of `environ`. What it says passes `redactor` first; without one,
    the one for the keys of `environ`. `private`: the directory for the files of an agent that is a program; it is
    deleted with the backend.

    Raises `BackendError` if a required key, or something that has to be installed, is missing, or if the key may not go
    where the config wants it, and `MassgenError` for a key that cannot be one.
    """
    if refused := refused_keys([config], environ):
        raise BackendError("auth", describe_refusal(refused))
    making = Making(environ, redactor or redactor_for(environ, [config]), private)
    if isinstance(config, InstalledBackendConfig):
        require_parts(config, environ)
    agent_type, own = member_of(config)
    if not isinstance(agent_type, MakesAgents):
        raise BackendError("bad_request", f"the adapter {agent_type.name} doesn't define how to create an agent")
    return RedactedBackend(as_backend(agent_type.make_agent(own, making)), making.redactor)


def destination_of(config: BackendConfig, environ: Mapping[str, str]) -> Destination | None:
    """Return the address and key that `ProviderLimiters` counts this backend's calls by; None if it makes none."""
    found = destination(config, environ)
    return found and Destination(*found)


# ---------------------------------------------------------------------------------------------------------------------
# The backend of an agent whose own one could not be made: the agent falls out at its first call, the others go on.


class UnusableBackend:
    def __init__(self, model: str, fault: BackendError) -> None:
        self.model = model
        self._fault = fault

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        del request
        raise BackendError(self._fault.reason, str(self._fault))
        yield  # an asynchronous generator, as every backend's

    async def aclose(self) -> None:
        """Nothing is open."""
