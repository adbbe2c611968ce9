"""A client for APIs that no SDK speaks: JSON goes out, lines of JSON come back. Knows no provider."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

import anyio
import httpx2

from massgen_mcp.backends.base import JsonObject
from massgen_mcp.backends.event_stream import MAX_EVENT_BYTES
from massgen_mcp.backends.fields import parsed
from massgen_mcp.backends.http import http_client
from massgen_mcp.errors import BackendError
from massgen_mcp.threads import abandonable


class RefusedError(Exception):
    """An answer that is no success, in the shape of an SDK's error, so that `failures` reads it."""

    def __init__(self, response: httpx2.Response, body: object, message: str) -> None:
        super().__init__(message)
        self.response = response
        self.status_code = response.status_code
        self.body = body
        self.message = message


class PlainClient:
    """Made at its first call, on a thread: that loads certificates."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._lock = anyio.Lock()
        self._client: httpx2.AsyncClient | None = None

    @asynccontextmanager
    async def posted(self, path: str, body: JsonObject) -> AsyncGenerator[AsyncGenerator[bytes]]:
        """The body of the reply to this request, in chunks as they come. Raises `RefusedError` for another status."""
        client = await self._get()
        async with client.stream("POST", f"{self._base_url}{path}", json=body) as response:
            if not response.is_success:
                raise await _refused(response)
            async with aclosing(response.aiter_raw()) as chunks:
                yield chunks

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _get(self) -> httpx2.AsyncClient:
        async with self._lock:
            if self._client is None:
                self._client = await abandonable(lambda: http_client(self._api_key))
            return self._client


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


async def _refused(response: httpx2.Response) -> RefusedError:
    text = (await response.aread()).decode(errors="replace")
    try:
        body = parsed(text)
    except (ValueError, RecursionError):
        body = None
    return RefusedError(response, body, text or response.reason_phrase)
