"""What both wires of OpenAI share: the SDK's client, the events that it is streamed, and how a call is made.

Must not know what is in an event, apart from errors.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from massgen_mcp.backends.base import JsonObject, ModelRequest
from massgen_mcp.backends.failures import of_event
from massgen_mcp.backends.http import TIMEOUT, Endpoint, LazyClient, drain, events_in, http_client, posted
from massgen_mcp.backends.streamed import HttpBackend, WireReply
from massgen_mcp.backends.wire_values import member, parsed

if TYPE_CHECKING:
    from openai import AsyncOpenAI

OPENAI = "https://api.openai.com/v1"

_SDK = "openai"
"""What is imported before the first call."""

_LAST = "[DONE]"
"""What a stream may end with, after its last event."""


class OpenAIBackend(HttpBackend["AsyncOpenAI", WireReply]):
    """One path of the API: a wire says what is sent there, and how a reply is read."""

    def __init__(
        self,
        endpoint: Endpoint,
        path: str,
        request_body: Callable[[Endpoint, ModelRequest], JsonObject],
        reply: Callable[[Endpoint, str, ModelRequest], WireReply],
    ) -> None:
        base_url = endpoint.base_url or OPENAI
        super().__init__(endpoint, base_url, LazyClient(lambda: _connect(endpoint, base_url), _SDK), reply)
        self._path = path
        self._request_body = request_body

    async def _events(self, client: "AsyncOpenAI", request: ModelRequest, _: WireReply, /) -> AsyncGenerator[object]:
        """The JSON of each event. Raises `BackendError` for an error in place of an event."""
        body = self._request_body(self._endpoint, request)
        async with posted(client, self._path, body) as chunks, aclosing(events_in(chunks)) as events:
            async for event in events:
                if event.data.startswith(_LAST):
                    await drain(chunks)
                    return
                value = parsed(event.data)
                if event.name == "error" or member(value, "error"):
                    raise of_event(value, "an error event", self._endpoint, self._base_url)
                yield value


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
