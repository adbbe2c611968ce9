"""A TCP server that answers HTTP requests with bytes as given, for the faults that no decent server can produce."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream

EVENT_STREAM = "text/event-stream"


@dataclass
class RawDouble:
    """`heads` are the request heads that came in, in order."""

    url: str
    heads: list[str] = field(default_factory=list[str])


@asynccontextmanager
async def raw_server(*replies: bytes) -> AsyncGenerator[RawDouble]:
    """Serve one of `replies` per connection, the last one for ever, and close each connection after it."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - not Django's
    double = RawDouble(f"http://127.0.0.1:{port}")
    left = list(replies)

    async def serve(stream: SocketStream) -> None:
        async with stream:
            double.heads.append(await _read_request(stream))
            reply = left.pop(0) if len(left) > 1 else left[0]
            try:
                for start in range(0, len(reply), 65536):
                    await stream.send(reply[start : start + 65536])
            except anyio.BrokenResourceError:
                pass  # a client that had enough

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield double
        tasks.cancel_scope.cancel()


def reply(
    body: bytes, *, status: str = "200 OK", media_type: str = EVENT_STREAM, headers: dict[str, str] | None = None
) -> bytes:
    """An HTTP/1.1 reply whose body ends in order with the connection."""
    lines = {"Content-Type": media_type, "Connection": "close", **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def sse(*events: dict[str, Any] | str) -> bytes:
    """Server-sent events; a dict's `type` is also its event name, as the providers do it."""
    out = b""
    for event in events:
        if isinstance(event, dict) and "type" in event:
            out += f"event: {event['type']}\n".encode()
        data = event if isinstance(event, str) else json.dumps(event)
        out += f"data: {data}\n\n".encode()
    return out


async def _read_request(stream: SocketStream) -> str:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    text = head.decode("latin-1")
    length = next((int(line.split(":")[1]) for line in text.lower().split("\r\n") if "content-length" in line), 0)
    while len(body) < length:
        body += await stream.receive()
    return text
