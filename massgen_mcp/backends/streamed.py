"""What every wire over HTTP does around one call: a client built at first use, and failures that are `BackendError`.

Must not know any wire.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Generic, TypeVar

from massgen_mcp.backends.base import ModelRequest, Part
from massgen_mcp.backends.failures import translated
from massgen_mcp.backends.http import Endpoint, LazyClient, SdkClient

ClientT = TypeVar("ClientT", bound=SdkClient)


class HttpBackend(ABC, Generic[ClientT]):
    """A `Backend` whose wire says only how one call is made and read."""

    def __init__(self, endpoint: Endpoint, base_url: str, client: LazyClient[ClientT]) -> None:
        self._endpoint = endpoint
        self._base_url = base_url
        self._client = client

    @property
    def model(self) -> str:
        return self._endpoint.model

    async def prepare(self) -> None:
        with translated(self._endpoint, self._base_url):
            await self._client.get()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        with translated(self._endpoint, self._base_url):
            client = await self._client.get()
            async with aclosing(self._parts(client, request)) as parts:
                async for part in parts:
                    yield part

    @abstractmethod
    def _parts(self, client: ClientT, request: ModelRequest, /) -> AsyncGenerator[Part]:
        """Make the call; whatever it raises is translated."""

    async def aclose(self) -> None:
        await self._client.aclose()
