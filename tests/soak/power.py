"""Power cuts: what was acknowledged is there afterwards and completes, and no journaled reply is paid for twice.

Server and runner work under strace; a model of the worst file system (see `disk_model`) tells what a cut at any moment
leaves, and a new server goes on from that.
"""

import json
import random
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.harness import SERVER_MODULE, TempHome, agent, call, happened, text_of, wait_until
from tests.soak import disk_model

WRITE = {"call": "write_file", "arguments": {"path": "note.txt", "content": "six times seven"}}
PATIENCE = 60


@dataclass(frozen=True)
class Moment:
    """A place in what strace wrote, and the runs that were acknowledged before it."""

    lines: int
    acknowledged: tuple[str, ...]


async def power_cuts(home: TempHome, *, cuts: int, seed: int = 1) -> str:
    """Cut the power when two runs have just been acknowledged, when replies are in their journals, and at `cuts` random
    moments after the first acknowledgement; returns the figures.
    """
    log = home.work / "calls"
    moments = await _work(home, log)
    with log.open(errors="replace") as file:
        lines = file.read().splitlines()
    chosen = moments[1:]
    for place in random.Random(seed).choices(range(moments[0].lines, moments[-1].lines), k=cuts):
        chosen.append(Moment(place, [moment for moment in moments if moment.lines <= place][-1].acknowledged))
    replies = 0
    for number, moment in enumerate(chosen):
        disk = disk_model.Disk(home.path.parent)
        disk.feed(lines[: moment.lines])
        place = replace(home, path=home.work / f"after-{number}" / home.path.name)
        disk.cut_power(place.path.parent)
        try:
            replies += await _judge(disk, home, place, moment)
        finally:
            place.close()
    return f"{len(chosen)} power cuts: every acknowledged run was there and completed, {replies} replies not paid twice"


async def _work(home: TempHome, log: Path) -> list[Moment]:
    """Two runs under strace, and the moments at which the power is certainly cut."""
    slow = [agent("one", WRITE, {"answer": "42", "delay_seconds": 2}), agent("two", {"answer": "43"})]
    config = home.config("team", *slow)
    moments: list[Moment] = []
    async with _traced(home, log) as client:
        for question in ("first", "second"):
            started = await call(client, "start_run", question=question, config=config)
            known = moments[-1].acknowledged if moments else ()
            moments.append(Moment(_length(log), (*known, started["run_id"])))
        runs = moments[-1].acknowledged
        for run_id in runs:
            await wait_until(lambda run_id=run_id: happened(home.run_directory(run_id), "answer_submitted"), PATIENCE)
            await wait_until(lambda run_id=run_id: happened(home.run_directory(run_id), "tool_finished"), PATIENCE)
        moments.append(Moment(_length(log), runs))
    home.close()
    return moments


@asynccontextmanager
async def _traced(home: TempHome, log: Path) -> AsyncGenerator[Client]:
    arguments = [*disk_model.OPTIONS, "-o", str(log), sys.executable, "-m", SERVER_MODULE]
    server = StdioServerParameters(command="strace", args=arguments, env=home.environ)
    with (home.work / "server.log").open("a") as errors:
        async with Client(stdio_client(server, errlog=errors)) as client:
            yield client


async def _judge(disk: disk_model.Disk, home: TempHome, place: TempHome, moment: Moment) -> int:
    """Go on from what a cut left; returns how many replies had been acted upon. Raises `AssertionError` for a loss."""
    acted_upon = {
        run_id: _acted_upon(disk.now(home.run_directory(run_id) / "events.jsonl")) for run_id in moment.acknowledged
    }
    lost: list[str] = []
    async with place.client() as client:
        for run_id in moment.acknowledged:
            lost += await _lost(client, place, run_id, acted_upon[run_id])
    assert not lost, f"power cut at line {moment.lines}: {'; '.join(lost)}"
    return sum(map(len, acted_upon.values()))


async def _lost(client: Client, place: TempHome, run_id: str, acted_upon: list[bytes]) -> list[str]:
    """What is wrong with an acknowledged run after a power cut."""
    status: dict[str, Any] = {"status": "queued"}
    while status["status"] in ("queued", "running"):
        reply = await client.call_tool("wait_run", {"run_id": run_id, "timeout_seconds": 30})
        if reply.is_error:
            return [f"the acknowledged run {run_id} is lost: {text_of(reply)}"]
        status = cast("dict[str, Any]", reply.structured_content)
    if status["status"] != "completed":
        return [f"the acknowledged run {run_id} is {status['status']}: {status.get('reason')}"]
    after = (place.run_directory(run_id) / "events.jsonl").read_bytes().splitlines()
    twice = [line for line in acted_upon if line not in after]
    return [f"{len(twice)} journaled replies of {run_id} were paid for twice"] if twice else []


def _acted_upon(journal: bytes) -> list[bytes]:
    """The replies in a journal after which their agent did something more."""
    lines = journal[: journal.rfind(b"\n") + 1].splitlines()
    events = [json.loads(line)["event"] for line in lines]
    return [
        line
        for place, (line, event) in enumerate(zip(lines, events, strict=True))
        if event["type"] == "model_replied"
        and any(later.get("agent") == event["agent"] for later in events[place + 1 :])
    ]


def _length(log: Path) -> int:
    return log.read_bytes().count(b"\n")
