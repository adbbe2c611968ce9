"""A TCP server that answers HTTP requests with bytes as given, for the faults that no decent server can produce."""

import json
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream

EVENT_STREAM = "text/event-stream"


@dataclass(frozen=True)
class Seen:
    """A request as it came in; header names are lower case."""

    head: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass(frozen=True)
class Flow:
    """A reply that is not made before it is sent, anew each time. `pause_seconds` lie between its pieces,
    `silence_seconds` before the first one.
    """

    pieces: Callable[[], Iterable[bytes]]
    pause_seconds: float = 0.0
    silence_seconds: float = 0.0


@dataclass
class RawDouble:
    """`requests` are those that came in, in order."""

    url: str
    requests: list[Seen] = field(default_factory=list[Seen])

    @property
    def heads(self) -> list[str]:
        return [seen.head for seen in self.requests]


def in_chunks(body: bytes, size: int, media_type: str = EVENT_STREAM) -> bytes:
    """As a reply whose chunks of the transfer the client reads one by one."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    pieces = (body[start : start + size] for start in range(0, len(body), size))
    return head + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@asynccontextmanager
async def answering(
    respond: Callable[[Seen, int], bytes | Flow], beside: Callable[[Seen], bytes | None] = lambda _: None
) -> AsyncGenerator[RawDouble]:
    """Serve what `respond` says to each request and its number, from 0; a connection is closed after its reply.

    A request that `beside` has an answer to is none of those: it is not counted.
    """
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - not Django's
    double = RawDouble(f"http://127.0.0.1:{port}")

    async def serve(stream: SocketStream) -> None:
        async with stream:
            try:
                seen = await _read_request(stream)
                if (apart := beside(seen)) is not None:
                    await _write(stream, apart)
                else:
                    double.requests.append(seen)
                    await _write(stream, respond(seen, len(double.requests) - 1))
            except (anyio.BrokenResourceError, anyio.EndOfStream):
                pass  # a client that had enough

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield double
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def raw_server(
    *replies: bytes, beside: Callable[[Seen], bytes | None] = lambda _: None
) -> AsyncGenerator[RawDouble]:
    """Serve one of `replies` per connection, the last one for ever; see `answering`."""
    async with answering(lambda _, number: replies[min(number, len(replies) - 1)], beside) as double:
        yield double


def reply(
    body: bytes, *, status: str = "200 OK", media_type: str = EVENT_STREAM, headers: dict[str, str] | None = None
) -> bytes:
    """An HTTP/1.1 reply whose body ends in order with the connection."""
    lines = {"Content-Type": media_type, "Connection": "close", **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def sse(*events: dict[str, Any] | str) -> bytes:
    """Server-sent events; a dict's `type` is also its event name, as the providers do it."""
    out: list[str] = []
    for event in events:
        if isinstance(event, dict) and "type" in event:
            out.append(f"event: {event['type']}\n")
        out.append(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n")
    return "".join(out).encode()


async def _write(stream: SocketStream, answer: bytes | Flow) -> None:
    flow = Flow(lambda: (answer,)) if isinstance(answer, bytes) else answer
    await anyio.sleep(flow.silence_seconds)
    for piece in flow.pieces():
        for start in range(0, len(piece), 65536):
            await stream.send(piece[start : start + 65536])
        await anyio.sleep(flow.pause_seconds)


async def _read_request(stream: SocketStream) -> Seen:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    text = head.decode("latin-1")
    first, *lines = text.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", "0"))
    while len(body) < length:
        body += await stream.receive()
    return Seen(text, first.split(" ")[1], headers, json.loads(body) if body else {})
