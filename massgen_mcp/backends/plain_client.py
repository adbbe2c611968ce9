"""A client for APIs that are asked without an SDK, and the lines of JSON in which some answer. Knows no provider."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from massgen_mcp.backends.base import JsonObject
from massgen_mcp.backends.event_stream import MAX_EVENT_BYTES
from massgen_mcp.backends.fields import parsed
from massgen_mcp.backends.http import KeyHeader, RefusedError, http_client
from massgen_mcp.errors import BackendError


class PlainClient:
    """One per backend, from a `LazyClient`: the guarded client that every wire uses, without an SDK around it."""

    def __init__(self, api_key: str, key_header: KeyHeader = "authorization") -> None:
        self._http = http_client(api_key, key_header)

    @asynccontextmanager
    async def posted(self, url: str, body: JsonObject) -> AsyncGenerator[AsyncGenerator[bytes]]:
        """The body of the reply to this request, in chunks as they come. Raises `RefusedError` for another status."""
        async with self._http.stream("POST", url, json=body) as response:
            if not response.is_success:
                raise await RefusedError.of(response)
            # Raw, because it is decoded already (see `http_client`).
            async with aclosing(response.aiter_raw()) as chunks:
                yield chunks

    async def close(self) -> None:
        await self._http.aclose()


async def json_lines(chunks: AsyncGenerator[bytes]) -> AsyncGenerator[object]:
    """The values of a reply, one a line; empty lines are none, nor is one that the end of the reply cuts off.

    Raises `ValueError` for a line that is no JSON, and `BackendError` for one that is too large.
    """
    buffer = bytearray()
    async for chunk in chunks:
        searched = len(buffer)
        buffer += chunk
        if len(buffer) > MAX_EVENT_BYTES:
            raise BackendError("bad_reply", f"a line of the reply is larger than {MAX_EVENT_BYTES} bytes")
        if (end := buffer.rfind(b"\n", searched)) < 0:
            continue
        lines = bytes(buffer[:end]).split(b"\n")
        del buffer[: end + 1]
        for line in lines:
            if line.strip():
                yield parsed(line.decode())
