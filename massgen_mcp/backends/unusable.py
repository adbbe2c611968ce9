"""The backend of an agent whose own one could not be made: the agent falls out at its first call, the others go on."""

from collections.abc import AsyncGenerator

from massgen_mcp.backends.base import ModelRequest, Part
from massgen_mcp.errors import BackendError


class UnusableBackend:
    def __init__(self, model: str, fault: BackendError) -> None:
        self._model = model
        self._fault = fault

    @property
    def model(self) -> str:
        return self._model

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        del request
        raise BackendError(self._fault.reason, str(self._fault))
        yield  # an asynchronous generator, as every backend's

    async def aclose(self) -> None:
        """Nothing is open."""
