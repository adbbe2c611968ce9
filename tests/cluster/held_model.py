"""A model that answers when the test lets it, and counts how many requests it has at once: those of a client that is
gone are none.
"""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.busy_double import NO_LIST


@dataclass
class Held:
    """A request that waits for its reply."""

    body: str
    replied: anyio.Event = field(default_factory=anyio.Event)


@dataclass
class HeldModel:
    url: str
    replies: Callable[[int], bytes]
    """By the number of a request, from 0."""
    held: list[Held] = field(default_factory=list[Held])
    bodies: list[str] = field(default_factory=list[str])
    began: list[float] = field(default_factory=list[float])
    """What and when each request was."""
    most_at_once: int = 0
    holds: bool = True

    def answer(self) -> str:
        """Answer the oldest request; returns what was asked."""
        first = self.held.pop(0)
        first.replied.set()
        return first.body

    def answer_all(self) -> None:
        """From now on, at once."""
        self.holds = False
        while self.held:
            self.answer()

    def most_within(self, seconds: float) -> int:
        return max(sum(0 <= later - first < seconds for later in self.began) for first in self.began)

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead):
                reader = BufferedByteReceiveStream(stream)
                head = (await reader.receive_until(b"\r\n\r\n", 65_536)).decode("latin-1").lower()
                if head.startswith("get "):
                    await stream.send(NO_LIST)
                    return
                body = await reader.receive_exactly(int(head.partition("content-length:")[2].split()[0]))
                request, number = Held(body.decode()), len(self.began)
                self.bodies.append(request.body)
                self.began.append(time.monotonic())
                self.held.append(request)
                self.most_at_once = max(self.most_at_once, len(self.held))
                if not self.holds:
                    self.answer()
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._leave, stream, request)
                    await request.replied.wait()
                    tasks.cancel_scope.cancel()
                await stream.send(self.replies(number))

    async def _leave(self, stream: SocketStream, request: Held) -> None:
        """When its client is gone."""
        with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
            await stream.receive()
        if request in self.held:
            self.held.remove(request)
        request.replied.set()


@asynccontextmanager
async def held_model(replies: Callable[[int], bytes]) -> AsyncGenerator[HeldModel]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    model = HeldModel(f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}", replies)  # noqa: S610 - not Django's
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, model.serve)
        yield model
        tasks.cancel_scope.cancel()
