"""A backend that is built at its first call, after what it needs is imported: making one costs a run nothing.

Must not know what is built.
"""

from collections.abc import AsyncGenerator, Callable

import anyio

from massgen_mcp.backends.base import Backend, ModelRequest, Part, prepare, window
from massgen_mcp.errors import BackendError
from massgen_mcp.threads import imported


class LateBackend:
    """`modules` are imported on a thread, because an event loop would stand still meanwhile."""

    def __init__(self, model: str, build: Callable[[], Backend], *modules: str) -> None:
        self._model = model
        self._build = build
        self._modules = modules
        self._lock = anyio.Lock()
        self._built: Backend | None = None

    @property
    def model(self) -> str:
        return self._model

    async def prepare(self) -> None:
        await prepare(await self._backend())

    async def window(self) -> int | None:
        return await window(await self._backend())

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        parts = (await self._backend()).stream(request)
        try:
            async for part in parts:
                yield part
        finally:
            await parts.aclose()

    async def _backend(self) -> Backend:
        async with self._lock:
            if self._built is None:
                await imported(*self._modules)
                self._built = self._build()
            return self._built

    async def aclose(self) -> None:
        if self._built is not None:
            await self._built.aclose()


# ---------------------------------------------------------------------------------------------------------------------
# The backend of an agent whose own one could not be made: the agent falls out at its first call, the others go on.


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
