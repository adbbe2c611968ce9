"""Many clients over HTTP at once, each asking about a run of its own, beside a bare server of the SDK.

Both servers are asked by the same clients, in turns of some seconds, so that whatever else the machine does is shared.
What must hold: every answer belongs to its question, and there is no error. How long answers take is told.
"""

import json
import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.harness import SERVER_MODULE, TempHome, http_server, spawned
from tests.soak.crowd import percentile

VERSION = "2026-07-28"
SECONDS_BETWEEN = 1.0
"""From one call of a client to its next."""
MAX_HEAD = 16_384


@dataclass
class Told:
    """By one server."""

    seconds: list[float] = field(default_factory=list[float])
    errors: list[str] = field(default_factory=list[str])
    foreign: int = 0
    """Answers to something else than was asked."""
    cpu: float = 0.0
    """Seconds of the server, all threads."""

    def line(self, name: str) -> str:
        p50, p99 = (1000 * percentile(self.seconds, share) for share in (0.5, 0.99))
        cpu = 1000 * self.cpu / max(1, len(self.seconds))
        return (
            f"{name}: {len(self.seconds)} answers, p50 {p50:.1f} ms, p99 {p99:.1f} ms, "
            f"CPU {cpu:.1f} ms each, {len(self.errors)} errors, {self.foreign} of others"
        )


class HttpClient:
    """One client with one connection."""

    def __init__(self, number: int, port: int, token: str) -> None:
        self._last = number * 1_000_000
        self._port = port
        self._token = token

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator["HttpClient"]:
        async with await anyio.connect_tcp("127.0.0.1", self._port) as stream:
            self._stream: anyio.abc.SocketStream = stream
            self._incoming = BufferedByteReceiveStream(stream)
            yield self

    async def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """The structured result. Raises `AssertionError` for anything else, or an answer to another request."""
        self._last += 1
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "crowd", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": self._last, "method": "tools/call", "params": params})
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nAuthorization: Bearer {self._token}\r\n"
            "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
            f"MCP-Protocol-Version: {VERSION}\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        await self._stream.send(f"{head}{body}".encode())
        answer = (await self._incoming.receive_until(b"\r\n\r\n", MAX_HEAD)).decode()
        length = re.search(r"^content-length: (\d+)", answer, re.MULTILINE | re.IGNORECASE)
        assert length, answer
        told = json.loads(await self._incoming.receive_exactly(int(length[1])))
        assert told.get("id") == self._last, told
        assert not told.get("result", {"isError": True}).get("isError"), told
        return told["result"]["structuredContent"]


async def http_crowd(
    home: TempHome, *, clients: int, seconds: float, turns: int = 6, module: str = SERVER_MODULE
) -> str:
    """Raises `AssertionError` for an error or somebody else's answer. `seconds` are for each of the two servers."""
    ours, bare = Told(), Told()
    async with http_server(home, module=module) as server, _bare_server(home) as (bare_pid, bare_port):
        port = int(server.authority.rpartition(":")[2])
        token = server.credentials["Authorization"].removeprefix("Bearer ")
        runs = await _runs(port, token, clients)
        for _ in range(turns):
            for told, pid, of in ((ours, server.process.pid, port), (bare, bare_pid, bare_port)):
                before = _cpu_seconds(pid)
                await _crowd(of, token, runs, seconds / turns, told)
                told.cpu += _cpu_seconds(pid) - before
    figures = f"{clients} clients, {seconds:g} s; {ours.line('ours')}; {bare.line('bare SDK')}"
    assert not ours.errors, f"{figures}; {ours.errors[0][:500]}"
    assert not ours.foreign, figures
    assert len(ours.seconds) >= clients, figures
    return figures


async def _runs(port: int, token: str, number: int) -> list[str]:
    """As many runs, each started by a client of its own."""
    found: list[str] = []

    async def start(place: int) -> None:
        async with HttpClient(place, port, token).connected() as client:
            started = await client.call("start_run", question=f"question {place}", models=["scripted/x"])
            found.append(started["run_id"])

    async with anyio.create_task_group() as tasks:
        for place in range(number):
            tasks.start_soon(start, place)
    assert len(set(found)) == number
    return found


async def _crowd(port: int, token: str, runs: list[str], seconds: float, told: Told) -> None:
    ends = anyio.current_time() + seconds

    async def ask(number: int, run_id: str) -> None:
        await anyio.sleep(SECONDS_BETWEEN * number / len(runs))  # as they come: not all in one moment
        async with HttpClient(number, port, token).connected() as client:
            while (began := anyio.current_time()) < ends:
                try:
                    answer = await client.call("get_status", run_id=run_id)
                except (AssertionError, OSError, anyio.EndOfStream, anyio.IncompleteRead) as error:
                    told.errors.append(f"{type(error).__name__}: {error}")
                    return
                took = anyio.current_time() - began
                told.seconds.append(took)
                told.foreign += _named(answer) != run_id
                await anyio.sleep(max(0.0, SECONDS_BETWEEN - took))

    async with anyio.create_task_group() as tasks:
        for number, run_id in enumerate(runs):
            tasks.start_soon(ask, number, run_id)


def _named(answer: dict[str, Any]) -> object:
    return answer.get("result", answer).get("run_id") if isinstance(answer.get("result", answer), dict) else None


@asynccontextmanager
async def _bare_server(home: TempHome) -> AsyncGenerator[tuple[int, int]]:
    """Its process id and its port."""
    async with spawned(home, sys.executable, "-m", "tests.soak.bare_http_server") as process:
        assert process.stdout
        yield process.pid, int((await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 100)).decode())


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
