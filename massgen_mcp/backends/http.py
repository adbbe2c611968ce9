"""What the HTTP wires share: where a model is, a guarded HTTP client, an SDK client built at first use, its streams.

Must not know any provider's wire format, nor import an SDK: importing one takes a second or more.
"""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Literal, Protocol, Self, TypeVar, cast

import anyio.lowlevel
import httpx2

from massgen_mcp.backends.base import JsonObject, JsonValue
from massgen_mcp.backends.event_stream import MAX_EVENT_BYTES, EventDecoder, ServerEvent
from massgen_mcp.backends.metering import heard_by
from massgen_mcp.backends.wire_values import Fields, fields_or_none, parsed
from massgen_mcp.config.access.connections import ProxySetting, find_proxy, name_page_senders, open_client
from massgen_mcp.config.providers.catalog import CostField, NativeTool
from massgen_mcp.errors import BackendError
from massgen_mcp.redaction import NO_KEYS, Redactor
from massgen_mcp.threads import Late

TIMEOUT = httpx2.Timeout(None, connect=10.0)
"""Seconds to set up a connection. How long a server may be silent, and a whole call take, is the caller's business."""

KeyHeader = Literal["authorization", "api-key", "x-api-key", "x-goog-api-key"]
EffortField = Literal["reasoning_effort", "reasoning"]

DRAIN_SECONDS = 0.1

MAX_REPLY_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One agent's model: where it is and how it is to be asked. `base_url` None: each wire knows its provider's own."""

    model: str
    api_key: str = field(repr=False)
    key_variable: str | None = None
    """Where the key was found; None where no key is sent."""
    base_url: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    reasoning_effort: str | None = None
    effort_field: EffortField = "reasoning_effort"
    """Where Chat Completions are told the effort: OpenRouter wants an object."""
    verbosity: str | None = None
    """Where the API has such a setting."""
    native_tools: tuple[NativeTool, ...] = ()
    """Tools that the provider is to run on its side."""
    key_header: KeyHeader = "authorization"
    """Azure expects the key in a header of its own."""
    deployment: str | None = None
    """Azure's name for the model, which it is asked for in place of `model`."""
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parameters of every request's address."""
    cost_field: CostField | None = None
    """Where the provider's usage says what a call cost."""
    of_xai: bool = False
    """Whether the Responses API is xAI's, which differs in its tools and in what it counts."""
    extra_body: JsonObject = field(default_factory=dict[str, JsonValue])
    start: str | None = None
    """The command that starts the server, where it is one of the user's own."""
    redactor: Redactor = field(default=NO_KEYS, repr=False)
    """Takes keys out of what is quoted in errors, before they are cut to their length."""

    @property
    def is_own_server(self) -> bool:
        """Check for a model server of the user's own, which is asked without a proxy."""
        return self.start is not None


_HEADERS = frozenset(
    (
        *("accept", "accept-encoding", "connection", "content-length", "content-type", "host", "transfer-encoding"),
        *("anthropic-version", "user-agent"),
    )
)


def http_client(endpoint: Endpoint, key_header: KeyHeader = "authorization") -> httpx2.AsyncClient:
    """Return a client that sends the endpoint's key, in this header alone, and no other secret; it follows no redirect,
    and limits the size of a reply. Raises `BadVariable`.
    """
    api_key, url = endpoint.api_key, endpoint.base_url or _ANYWHERE
    allowed = _HEADERS | {key_header}

    async def send_only_ours(request: httpx2.Request) -> None:
        # The SDKs add headers out of the environment (organisations, "custom headers"), whoever is asked.
        for name in set(request.headers) - allowed:
            del request.headers[name]
        request.headers[key_header] = f"Bearer {api_key}" if key_header == "authorization" else api_key
        _say_when_sent(request)

    guard = partial(_guard, find_proxy(url, own_server=endpoint.is_own_server))
    return open_client(
        url,
        own_server=endpoint.is_own_server,
        headers={"Accept-Encoding": "identity"},
        timeout=TIMEOUT,
        hooks={"request": [send_only_ours], "response": [guard]},
    )


_ANYWHERE = "https://"
"""An address whose host the wire knows."""


def _say_when_sent(request: httpx2.Request) -> None:
    say = heard_by.get()
    say(False)

    async def trace(name: str, _: object) -> None:
        if name.endswith(".send_request_headers.started"):
            say(True)

    request.extensions["trace"] = trace


def listing_client(endpoint: Endpoint) -> httpx2.AsyncClient:
    """Return a client for a server's list of models; no SDK has a hand in it. Raises `BadVariable`."""
    headers = {"Accept-Encoding": "identity", "Authorization": f"Bearer {endpoint.api_key}"}
    url = endpoint.base_url or _ANYWHERE
    return open_client(url, own_server=endpoint.is_own_server, headers=headers, timeout=TIMEOUT)


@cache
def _encodings() -> frozenset[str]:
    """Compressions that can be read here: that of zlib always, others as packages are installed."""
    return frozenset(open_client("http://localhost", timeout=TIMEOUT).headers["accept-encoding"].split(", "))


async def _guard(proxy: ProxySetting | None, response: httpx2.Response) -> None:
    named = response.headers.get_list("content-encoding", split_commas=True)
    encodings = [name.strip().lower() for name in named if name.strip().lower() not in ("", "identity")]
    if len(encodings) > 1 or not _encodings().issuperset(encodings):
        unreadable = f"data in a compression format that massgen can't read ({', '.join(encodings)})"
        raise BackendError("bad_reply", f"{response.url} answered with {unreadable}")
    if isinstance(response.stream, httpx2.AsyncByteStream):
        fault = BackendError("bad_reply", f"{response.url} sent more than {MAX_REPLY_BYTES} bytes")
        response.stream = CappedStream(response.stream, MAX_REPLY_BYTES, fault)
        if encodings:
            # Nobody behind us decodes, nor could bound it: the limit holds for what was sent and for what is in it.
            response.stream = CappedStream(_DecodedStream(response.stream, encodings[0]), MAX_REPLY_BYTES, fault)
            del response.headers["content-encoding"]
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.is_success and media_type == "application/json" and await _is_whole_reply(response):
        return
    if response.is_success and media_type in ("text/html", "application/json"):
        raise await _no_stream(response, media_type, proxy)


async def _is_whole_reply(response: httpx2.Response) -> bool:
    """Check whether a server ignored `stream`: then its one object is passed on as the one event."""
    if not isinstance(response.stream, httpx2.AsyncByteStream):
        return False
    body = b"".join([piece async for piece in response.stream])
    reply: Fields = {}
    with suppress(ValueError, RecursionError):
        reply = fields_or_none(parsed(body.decode()))
    line = json.dumps(reply).encode()
    of_chat, of_ollama = bool(reply.get("choices")), "message" in reply and "done" in reply
    if of_chat:
        body = b"data: " + line + b"\n\ndata: [DONE]\n\n"
    elif of_ollama:
        body = line + b"\n"
    response.stream = httpx2.ByteStream(body)
    return of_chat or of_ollama


async def _no_stream(response: httpx2.Response, media_type: str, proxy: ProxySetting | None) -> Exception:
    """What a success is that is no stream: an error with a wrong status, or the page of a proxy, which may be gone with
    the next try; else something that answers in another way.
    """
    if media_type == "application/json":
        refused = await RefusedError.of(response)
        if fields_or_none(refused.body).get("error"):
            return refused
    message = f"{response.url} answered with {media_type} instead of an event stream; is base_url right?"
    if media_type != "text/html":
        return BackendError("bad_reply", message)
    message = f"{message} Or {name_page_senders(proxy)} may have sent the page"
    return BackendError("bad_reply", message, retryable=True, in_between="page")


class RefusedError(Exception):
    """An answer that is no success, in the shape of an SDK's error, so that `failures` reads it."""

    def __init__(self, response: httpx2.Response, body: object, message: str) -> None:
        super().__init__(message)
        self.response = response
        self.status_code = response.status_code
        self.body = body
        self.message = message

    @classmethod
    async def of(cls, response: httpx2.Response) -> Self:
        """Reads its body, which is none where it is no JSON."""
        text = (await response.aread()).decode(errors="replace")
        try:
            body = parsed(text)
        except (ValueError, RecursionError):
            body = None
        return cls(response, body, text or response.reason_phrase)


class _DecodedStream(httpx2.AsyncByteStream):
    """What is in a compressed reply, in pieces of bounded size."""

    def __init__(self, encoded: httpx2.AsyncByteStream, encoding: str) -> None:
        self._inner = httpx2.Response(200, headers={"content-encoding": encoding}, stream=encoded)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(self._inner.aiter_bytes()) as chunks:
            async for chunk in chunks:
                yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class CappedStream(httpx2.AsyncByteStream):
    """At most so many bytes: one more raises `fault`."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int, fault: Exception) -> None:
        self._inner, self._most, self._fault = inner, most, fault

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most
        chunks = self._inner.__aiter__()
        try:
            async for chunk in chunks:
                left -= len(chunk)
                if left < 0:
                    raise self._fault
                yield chunk
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()

    async def aclose(self) -> None:
        await self._inner.aclose()


class SdkClient(Protocol):
    async def close(self) -> None: ...


class PostingClient(Protocol):
    """What the clients of both SDKs have for requests of any kind."""

    async def post(self, path: str, *, cast_to: type[httpx2.Response], body: JsonObject, stream: bool) -> object: ...


@asynccontextmanager
async def posted(client: PostingClient, path: str, body: JsonObject) -> AsyncGenerator[AsyncGenerator[bytes]]:
    """The body of the reply to this request, in chunks as they come. Raises what the SDK raises for a failed request.

    The SDK makes the request; its stream of typed events would cost more than all the rest of a reply.
    """
    response = cast("httpx2.Response", await client.post(path, cast_to=httpx2.Response, body=body, stream=True))
    try:
        # Raw, because it is decoded already (see `_guard`).
        async with aclosing(response.aiter_raw()) as chunks:
            yield chunks
    finally:
        await response.aclose()


async def events_in(chunks: AsyncGenerator[bytes]) -> AsyncGenerator[ServerEvent]:
    """The server-sent events in a reply."""
    decoder = EventDecoder()
    async for chunk in chunks:
        for event in decoder.feed(chunk):
            yield event


async def drain(chunks: AsyncGenerator[bytes]) -> None:
    """Read to the end of a reply that has told its last event, unless that takes long: its connection is then used
    again.
    """
    with anyio.move_on_after(DRAIN_SECONDS), suppress(httpx2.HTTPError, BackendError):
        async for _ in chunks:
            await anyio.lowlevel.checkpoint()


ClientT = TypeVar("ClientT", bound=SdkClient)


class LazyClient(Late[ClientT]):
    """An SDK's client, made at first use."""

    async def aclose(self) -> None:
        client, self.made = self.made, None
        if client is not None:
            await client.close()


# -- a client for APIs that are asked without an SDK, and the lines of JSON in which some answer ----------------------


class PlainClient:
    """One per backend, from a `LazyClient`: the guarded client that every wire uses, without an SDK around it."""

    def __init__(self, endpoint: Endpoint, key_header: KeyHeader = "authorization") -> None:
        self._http = http_client(endpoint, key_header)

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


_EMPTY_LINES = re.compile(rb"\n{2,}")


async def json_lines(chunks: AsyncGenerator[bytes]) -> AsyncGenerator[object]:
    """The values of a reply, one a line; empty lines are none, nor is one that the end of the reply cuts off.

    Raises `ValueError` for a line that is no JSON, and `BackendError` for one that is too large.
    """
    line = bytearray()
    async for chunk in chunks:
        *ends, rest = _EMPTY_LINES.sub(b"\n", chunk).split(b"\n")
        for end in ends:
            _lengthen(line, end)
            if line.strip():
                yield parsed(line.decode())
            line.clear()
        _lengthen(line, rest)


def _lengthen(line: bytearray, piece: bytes) -> None:
    line += piece
    if len(line) > MAX_EVENT_BYTES:
        raise BackendError("bad_reply", f"a line of the reply is larger than {MAX_EVENT_BYTES} bytes")
