"""Many servers of one home at once, each with many calls in flight."""

import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from tests.harness import SERVER_MODULE, RawServer, TempHome, raw_server


@dataclass(frozen=True)
class Reply:
    """`content`: the structured result; None for a refusal, whose text is in `refusal`. `seconds` from the call on."""

    content: dict[str, Any] | None
    refusal: str
    seconds: float


@asynccontextmanager
async def crowd(home: TempHome, size: int, *, module: str = SERVER_MODULE) -> AsyncGenerator[list[RawServer]]:
    """`size` server processes, ready."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(raw_server(home, module=module)) for _ in range(size)]


async def call_at_once(
    servers: list[RawServer], tool: str, calls: Iterable[list[dict[str, Any]]], *, seconds: float = 300
) -> list[Reply]:
    """Send every server its calls without waiting in between; the replies in no particular order."""
    replies: list[Reply] = []

    async def drive(server: RawServer, arguments: list[dict[str, Any]]) -> None:
        began: dict[int, float] = {}

        async def send() -> None:
            for each in arguments:
                moment = time.monotonic()
                began[await server.request("tools/call", name=tool, arguments=each)] = moment

        async with anyio.create_task_group() as sending:
            sending.start_soon(send)
            async for message in server.replies(len(arguments), seconds):
                result = message["result"]
                text = "" if result.get("structuredContent") else result["content"][0]["text"]
                took = time.monotonic() - began[message["id"]]
                replies.append(Reply(result.get("structuredContent"), text, took))

    async with anyio.create_task_group() as tasks:
        for server, arguments in zip(servers, calls, strict=True):
            tasks.start_soon(drive, server, arguments)
    return replies


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


@dataclass(frozen=True)
class Footprint:
    """Of one process: open files, threads, children that nobody reaped, resident memory now and at most (KiB)."""

    files: int
    threads: int
    zombies: int
    rss: int
    peak: int


def footprint(pid: int) -> Footprint:
    process = Path("/proc") / str(pid)
    fields = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line)
    zombies = 0
    for task in (process / "task").iterdir():
        for child in (task / "children").read_text().split():
            zombies += "\nState:\tZ" in (Path("/proc") / child / "status").read_text()
    return Footprint(
        files=len(list((process / "fd").iterdir())),
        threads=int(fields["Threads"]),
        zombies=zombies,
        rss=int(fields["VmRSS"].split()[0]),
        peak=int(fields["VmHWM"].split()[0]),
    )
