"""What every wire over HTTP does around one call: a client built at first use, the events of a reply read as they come,
and failures that are `BackendError`.

Must not know any wire.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Any, Generic, TypeVar

from massgen_mcp.backends.base import ModelRequest, Part
from massgen_mcp.backends.drafts import Drafts
from massgen_mcp.backends.failures import translated
from massgen_mcp.backends.http import ClientT, Endpoint, LazyClient
from massgen_mcp.backends.wire_values import CallIds


class WireReply(ABC):
    """Puts the events of one reply together."""

    def __init__(self, endpoint: Endpoint, base_url: str, request: ModelRequest) -> None:
        self._endpoint = endpoint
        self._base_url = base_url
        self._ids = CallIds(request.messages)
        self._drafts = Drafts(request.tools)

    @abstractmethod
    def read(self, event: Any, /) -> Iterator[Part]:  # noqa: ANN401 - each wire has events of its own
        """What one event comes to. Raises `BackendError` for an error that is told in its place."""

    @abstractmethod
    def finish(self) -> Iterator[Part]:
        """What is known only at the end. Raises `BackendError` if the model did not come to one."""


ReplyT = TypeVar("ReplyT", bound=WireReply)


class HttpBackend(ABC, Generic[ClientT, ReplyT]):
    """A `Backend` whose wire says only how a call is made, and how its events are read."""

    def __init__(
        self,
        endpoint: Endpoint,
        base_url: str,
        client: LazyClient[ClientT],
        reply: Callable[[Endpoint, str, ModelRequest], ReplyT],
    ) -> None:
        self._endpoint = endpoint
        self._base_url = base_url
        self._client = client
        self._reply = reply

    @property
    def model(self) -> str:
        return self._endpoint.model

    async def prepare(self) -> None:
        with translated(self._endpoint, self._base_url):
            await self._client.get()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        with translated(self._endpoint, self._base_url):
            client = await self._client.get()
            reply = self._reply(self._endpoint, self._base_url, request)
            async with aclosing(self._events(client, request, reply)) as events:
                async for event in events:
                    for part in reply.read(event):
                        yield part
            for part in reply.finish():
                yield part

    @abstractmethod
    def _events(self, client: ClientT, request: ModelRequest, reply: ReplyT, /) -> AsyncGenerator[Any]:
        """Make the call; its events, of which `reply` has read all that were yielded. What it raises is translated."""

    async def aclose(self) -> None:
        await self._client.aclose()
