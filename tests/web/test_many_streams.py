"""Streams of one's own that go on take no place from one's other tabs."""

from collections import Counter

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from massgen_mcp.server.http import gate
from massgen_mcp.server.http.tokens import Tokens

TOKEN = "a-token-of-the-operator-0123456789"
HOST = "127.0.0.1:1"


async def streaming(scope: Scope, _: Receive, send: Send) -> None:
    """A GET is a stream without an end, everything else is answered."""
    kind = b"text/event-stream" if scope["method"] == "GET" else b"application/json"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    if scope["method"] == "GET":
        await anyio.sleep_forever()
    await send({"type": "http.response.body", "body": b"{}"})


class Tabs:
    def __init__(self) -> None:
        admission = gate.Admission(Tokens(TOKEN.encode(), None, f"http://{HOST}/mcp"), [HOST])
        self._gate = gate.Gate(streaming, admission)
        self.told = Counter[int]()
        self.ended = 0

    async def ask(self, method: str) -> None:
        headers = [(b"host", HOST.encode()), (b"authorization", f"Bearer {TOKEN}".encode())]
        scope = {"type": "http", "method": method, "path": "/mcp", "raw_path": b"/mcp", "query_string": b""}

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            self.told[message.get("status", 0)] += 1
            self.ended += message["type"] == "http.response.body" and not message.get("more_body")

        await self._gate({**scope, "headers": headers, "client": ("127.0.0.1", 9)}, receive, send)


async def test_seven_hundred_streams_leave_room_for_further_ones_and_for_calls() -> None:
    tabs = Tabs()
    async with anyio.create_task_group() as tasks:
        for _ in range(700):
            tasks.start_soon(tabs.ask, "GET")
        await anyio.wait_all_tasks_blocked()
        await tabs.ask("POST")
        assert (tabs.told[200], tabs.told[503]) == (701, 0)
        tasks.cancel_scope.cancel()


async def test_where_streams_are_too_many_the_oldest_ends_and_not_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MAX_STREAMS", 5)
    tabs = Tabs()
    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(tabs.ask, "GET")
        await anyio.wait_all_tasks_blocked()
        assert (tabs.told[200], tabs.ended) == (8, 3)
        tasks.cancel_scope.cancel()
