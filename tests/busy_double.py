"""A provider that takes its time and counts: what came in, and how much of it at once. Replies as in `raw_double`."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import SocketAttribute, SocketStream

NO_LIST = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@dataclass
class BusyDouble:
    """`heads` and `bodies` are of the requests that came in, in order."""

    url: str
    heads: list[str] = field(default_factory=list[str])
    bodies: list[bytes] = field(default_factory=list[bytes])
    at_once: int = 0
    most_at_once: int = 0


@asynccontextmanager
async def busy_server(
    *replies: bytes, latency: float = 0.0, hold: anyio.Event | None = None
) -> AsyncGenerator[BusyDouble]:
    """Serve one of `replies` per connection, the last one for ever, after `latency` seconds and `hold`. Who asks which
    models there are is told at once that there is no list, and is not counted.
    """
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - not Django's
    double = BusyDouble(f"http://127.0.0.1:{port}")

    async def serve(stream: SocketStream) -> None:
        async with stream:
            try:
                head, body = await _read_request(stream)
                if head.startswith("GET "):
                    await stream.send(NO_LIST)
                    return
                number = len(double.heads)
                double.heads.append(head)
                double.bodies.append(body)
                double.at_once += 1
                double.most_at_once = max(double.most_at_once, double.at_once)
                try:
                    await anyio.sleep(latency)
                    if hold is not None:
                        await hold.wait()
                finally:
                    double.at_once -= 1
                await stream.send(replies[min(number, len(replies) - 1)])
            except (anyio.BrokenResourceError, anyio.EndOfStream):
                pass  # a client that had enough

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield double
        tasks.cancel_scope.cancel()


async def _read_request(stream: SocketStream) -> tuple[str, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    text = head.decode("latin-1")
    length = next((int(line.split(":")[1]) for line in text.lower().split("\r\n") if "content-length" in line), 0)
    while len(body) < length:
        body += await stream.receive()
    return text, body
