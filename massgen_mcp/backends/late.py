"""A backend that is built at its first call, after its imports: making one costs a run nothing."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from massgen_mcp.backends.base import Backend, ModelRequest, Part, prepare, window
from massgen_mcp.threads import Late


class LateBackend:
    def __init__(self, model: str, open_backend: Callable[[], Backend]) -> None:
        self.model, self._backend = model, Late(open_backend, "massgen_mcp.backends.http")

    async def prepare(self) -> None:
        await prepare(await self._backend.get())

    async def window(self) -> int | None:
        return await window(await self._backend.get())

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        async with aclosing((await self._backend.get()).stream(request)) as parts:
            async for part in parts:
                yield part

    async def aclose(self) -> None:
        if self._backend.made is not None:
            await self._backend.made.aclose()
