"""Streamable HTTP to a server that is not trusted: replies are bounded, whatever their headers say."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2
from mcp.client.streamable_http import streamable_http_client

from massgen_mcp.mcp_streams import TransportStreams
from massgen_mcp.tools.mcp_servers.framing import MAX_MESSAGE_BYTES

MAX_RESPONSE_BYTES = 4 * MAX_MESSAGE_BYTES
"""Of one response; it may be a stream of several messages."""
CONNECT_SECONDS = 30.0


@asynccontextmanager
async def over_http(url: str, headers: Mapping[str, str], read_seconds: float) -> AsyncGenerator[TransportStreams]:
    """The streams that the SDK's client speaks over. Redirects are followed within the server's origin only."""
    client = httpx2.AsyncClient(
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(CONNECT_SECONDS, read=read_seconds),
        transport=_Bounded(httpx2.AsyncHTTPTransport()),
        trust_env=False,
    )
    async with client, streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams:
        yield streams


class _Bounded(httpx2.AsyncBaseTransport):
    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.RemoteProtocolError("the server compresses its replies, which was not asked for")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedStream(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_RESPONSE_BYTES
        async for chunk in self._inner:
            left -= len(chunk)
            if left < 0:
                raise httpx2.RemoteProtocolError(f"the reply is larger than {MAX_RESPONSE_BYTES} bytes; ask for less")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
