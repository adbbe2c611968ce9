"""What every wire over HTTP does around one call: a client built at first use, the events of a reply read as they come,
and failures that are `BackendError`.

Must not know any wire.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from massgen_mcp.backends.base import ModelRequest, Part
from massgen_mcp.backends.drafts import Drafts
from massgen_mcp.backends.failures import translated
from massgen_mcp.backends.http import Endpoint, KeyHeader, WireClient
from massgen_mcp.backends.wire_values import CallIds

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


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


class HttpBackend(ABC, Generic[ReplyT]):
    """A `Backend` whose wire says only how a call is made, and how its events are read."""

    def __init__(
        self,
        endpoint: Endpoint,
        base_url: str,
        reply: Callable[[Endpoint, str, ModelRequest], ReplyT],
        key_header: KeyHeader = "authorization",
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """`headers`: what every request says besides the key."""
        self._endpoint = endpoint
        self._base_url = base_url
        self._reply = reply
        self._key_header: KeyHeader = key_header
        self._headers = headers
        self._client: WireClient | None = None

    @property
    def model(self) -> str:
        return self._endpoint.model

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        with translated(self._endpoint, self._base_url):
            if self._client is None:
                self._client = WireClient(self._endpoint.api_key, self._key_header, self._headers)
            reply = self._reply(self._endpoint, self._base_url, request)
            async with aclosing(self._events(self._client, request, reply)) as events:
                async for event in events:
                    for part in reply.read(event):
                        yield part
            for part in reply.finish():
                yield part

    @abstractmethod
    def _events(self, client: WireClient, request: ModelRequest, reply: ReplyT, /) -> AsyncGenerator[Any]:
        """Make the call; its events, of which `reply` has read all that were yielded. What it raises is translated."""

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
