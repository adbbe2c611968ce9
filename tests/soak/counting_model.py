"""A model in this process that has its agents work: they use the tools of their script, then answer, vote and present.

Every request is counted by the mark in it, so that it is known what was really sent, and not only what we recorded.
"""

import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from benchmarks.dialects import DIALECTS, Event, Played

Step = tuple[str, Mapping[str, Any]]
"""The name of a tool, or its end, and what it is called with."""
INPUT_TOKENS = 100
"""Of every request, as it is billed."""
_MARK = re.compile(r"<<(\w+)\.\d+>>")
_NO_LIST = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@dataclass
class CountingModel:
    """`scripts`: by the first word of a mark such as `<<nested.7>>`, which stands in the instructions of an agent."""

    base_url: str
    scripts: Mapping[str, Sequence[Step]]
    seconds: float
    """How long each reply takes."""
    sent: Counter[str] = field(default_factory=Counter[str])
    """Requests by their mark."""
    answering: int = 0
    """Requests that wait for their reply."""
    held_from: int | None = None
    """The request from which on replies wait for `go_on`."""
    go_on: anyio.Event = field(default_factory=anyio.Event)
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    async def serve(self, stream: SocketStream) -> None:
        """One request of one connection."""
        async with stream:
            try:
                reader = BufferedByteReceiveStream(stream)
                head = (await reader.receive_until(b"\r\n\r\n", 65_536)).decode("latin-1")
                if head.startswith("GET "):
                    await stream.send(_NO_LIST)
                    return
                length = re.search(r"(?i)content-length: (\d+)", head)
                body = await reader.receive_exactly(int(length[1]) if length else 0)
                reply = DIALECTS["/chat/completions"].stream(self._play(json.loads(body)))
                self.answering += 1
                try:
                    await anyio.sleep(self.seconds)
                    if self.held_from is not None and self.sent.total() >= self.held_from:
                        await self.go_on.wait()
                finally:
                    self.answering -= 1
                await stream.send(reply.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
            except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead):
                pass  # a client that was killed

    def _play(self, request: Event) -> Played:
        messages: Sequence[Event] = request["messages"]
        found = _MARK.search(json.dumps(messages[0]))
        assert found, messages[0]
        self.sent[found[0]] += 1
        number, tools = next(self._numbers), DIALECTS["/chat/completions"].tools(request)
        if "vote" in tools and ("new_answer" not in tools or "Answer number" in json.dumps(messages)):
            known = tools["vote"]["properties"]
            choice, *others = known["agent_id"]["enum"]
            same = {"same_as": others} if "same_as" in known else {}
            return Played(number, json.dumps({"agent_id": choice, "reason": "It is right.", **same}), "vote")
        if "new_answer" not in tools:
            return Played(number, "The final text.")
        done = sum(message["role"] == "tool" for message in messages)
        for ending, arguments in self.scripts[found[1]][done:]:
            for name in tools:
                if name.endswith(ending):
                    return Played(number, json.dumps(arguments), name)
        return Played(number, json.dumps({"content": f"Answer number {number}: forty-two."}), "new_answer")


@asynccontextmanager
async def counting_model(scripts: Mapping[str, Sequence[Step]], seconds: float) -> AsyncGenerator[CountingModel]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - not Django's
    model = CountingModel(f"http://127.0.0.1:{port}/v1", scripts, seconds)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, model.serve)
        yield model
        tasks.cancel_scope.cancel()
