"""What both wires of OpenAI share: the SDK's client, and the events that it is streamed.

Must not know what is in an event, apart from errors.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from massgen_mcp.backends.base import JsonObject
from massgen_mcp.backends.failures import of_event
from massgen_mcp.backends.fields import parsed
from massgen_mcp.backends.http import TIMEOUT, Endpoint, drain, events_in, http_client, posted
from massgen_mcp.backends.usage import member

if TYPE_CHECKING:
    from openai import AsyncOpenAI

OPENAI = "https://api.openai.com/v1"

SDK = "openai"
"""What is imported before the first call."""

_LAST = "[DONE]"
"""What a stream may end with, after its last event."""


def connect(endpoint: Endpoint, base_url: str) -> "AsyncOpenAI":
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


async def openai_events(
    client: "AsyncOpenAI", path: str, body: JsonObject, endpoint: Endpoint, base_url: str
) -> AsyncGenerator[object]:
    """The JSON of each event that is streamed in reply. Raises `BackendError` for an error in place of an event."""
    async with posted(client, path, body) as chunks, aclosing(events_in(chunks)) as events:
        async for event in events:
            if event.data.startswith(_LAST):
                await drain(chunks)
                return
            value = parsed(event.data)
            if error := member(value, "error"):
                raise of_event(error, "an error event", endpoint, base_url)
            yield value
