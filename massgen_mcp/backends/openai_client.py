"""What both wires of OpenAI share: the SDK's client, the events that it is streamed, and how a call is made.

Must not know what is in an event, apart from errors.
"""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

from massgen_mcp.backends.base import JsonObject, ModelRequest, Part
from massgen_mcp.backends.failures import of_event
from massgen_mcp.backends.fields import parsed
from massgen_mcp.backends.http import TIMEOUT, Endpoint, LazyClient, drain, events_in, http_client, posted
from massgen_mcp.backends.streamed import HttpBackend
from massgen_mcp.backends.usage import member

if TYPE_CHECKING:
    from openai import AsyncOpenAI

OPENAI = "https://api.openai.com/v1"

_SDK = "openai"
"""What is imported before the first call."""

_LAST = "[DONE]"
"""What a stream may end with, after its last event."""


class ReplyBuilder(Protocol):
    """Puts the events of one reply together."""

    def read(self, event: object, /) -> Iterator[Part]: ...

    def finish(self) -> Iterator[Part]:
        """What is known only at the end."""
        ...


class OpenAIBackend(HttpBackend["AsyncOpenAI"]):
    """One path of the API: a wire says what is sent there, and how a reply is read."""

    def __init__(
        self,
        endpoint: Endpoint,
        path: str,
        request_body: Callable[[Endpoint, ModelRequest], JsonObject],
        reply: Callable[[Endpoint, str, ModelRequest], ReplyBuilder],
    ) -> None:
        base_url = endpoint.base_url or OPENAI
        super().__init__(endpoint, base_url, LazyClient(lambda: _connect(endpoint, base_url), _SDK))
        self._path = path
        self._request_body = request_body
        self._reply = reply

    async def _parts(self, client: "AsyncOpenAI", request: ModelRequest, /) -> AsyncGenerator[Part]:
        body = self._request_body(self._endpoint, request)
        reply = self._reply(self._endpoint, self._base_url, request)
        async with aclosing(_events(client, self._path, body, self._endpoint, self._base_url)) as events:
            async for event in events:
                for part in reply.read(event):
                    yield part
        for part in reply.finish():
            yield part


def _connect(endpoint: Endpoint, base_url: str) -> "AsyncOpenAI":
    """Build the SDK's client; slow at first, so for a thread."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(
        api_key=endpoint.api_key,
        base_url=base_url,
        timeout=TIMEOUT,
        max_retries=0,
        default_query=dict(endpoint.query),
        http_client=http_client(endpoint.api_key, endpoint.key_header),
    )


async def _events(
    client: "AsyncOpenAI", path: str, body: JsonObject, endpoint: Endpoint, base_url: str
) -> AsyncGenerator[object]:
    """The JSON of each event that is streamed in reply. Raises `BackendError` for an error in place of an event."""
    async with posted(client, path, body) as chunks, aclosing(events_in(chunks)) as events:
        async for event in events:
            if event.data.startswith(_LAST):
                await drain(chunks)
                return
            value = parsed(event.data)
            if event.name == "error" or member(value, "error"):
                raise of_event(value, "an error event", endpoint, base_url)
            yield value
