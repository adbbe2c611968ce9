"""One run's files are cut off and altered, bit by bit: nobody else notices, and nobody is told anything untrue."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from massgen_mcp.errors import MassgenError
from massgen_mcp.home import Home
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import local_engine
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.server.tools import add_tools
from tests.harness import TempHome, agent, call, text_of, wait_until

FAITHFUL_ERRORS = ("run_damaged",)


async def damage(home: TempHome, *, truncations: int, flips: int, seed: int = 1) -> str:
    """Returns the figures. Everything is asked of a server's tools, in this process."""
    victim, others = await _three_runs(home)
    service = RunService(local_engine(Home(home.path)), home.environ)
    server = MassgenServer()
    add_tools(server, service)
    looking = _Looking(server, victim, others)
    truth = await looking.at_everything()
    request = RunFiles(home.run_directory(victim)).read_request()
    told = {"whole": 0, "typed error": 0, "part": 0}
    dice = random.Random(seed)
    damages = _damages(home.run_directory(victim), dice, truncations, flips)
    for number, (path, damaged) in enumerate(damages):
        whole = path.read_bytes()
        path.write_bytes(damaged)
        try:
            told[_compare(await looking.at_everything(), truth, f"{path.name}, damage {number}, seed {seed}")] += 1
            if path.name == "config.json":
                try:
                    assert RunFiles(home.run_directory(victim)).read_request() == request
                except MassgenError as error:
                    assert error.code in FAITHFUL_ERRORS, error  # noqa: PT017 - a refusal is as good
        finally:
            path.write_bytes(whole)
    assert await looking.at_everything() == truth, "it is whole again"
    service.close()
    return f"{truncations} truncations, {flips} bit flips: {', '.join(f'{n} x {what}' for what, n in told.items())}"


async def _three_runs(home: TempHome) -> tuple[str, list[str]]:
    """A victim with answers, votes and files, and two others."""
    write = {"call": "write_file", "arguments": {"path": "note.txt", "content": "a file"}}
    team = [
        agent("one", write, {"answer": "forty-two"}, {"vote": "own"}),
        agent("two", {"answer": "six times seven"}, {"vote": "agent1"}),
    ]
    runs: list[str] = []
    async with home.client() as client:
        for question in ("victim", "other", "third"):
            config = home.config("team", *team)
            started = await call(client, "start_run", question=question, config=config, wait_seconds=40)
            assert started["status"] == "completed"
            runs.append(started["run_id"])
    await wait_until(lambda: not home.processes())
    return runs[0], runs[1:]


def _damages(run: Path, dice: random.Random, truncations: int, flips: int) -> Iterator[tuple[Path, bytes]]:
    """Every file gets its share by size, but the journal half of all."""
    files = sorted(path for path in run.rglob("*") if path.is_file() and not path.is_symlink() and path.stat().st_size)
    for path in files:
        path.chmod(0o600)  # snapshots are read-only
    weights = [path.stat().st_size for path in files]
    others = sum(weights) - (run / "events.jsonl").stat().st_size
    weights = [others if path.name == "events.jsonl" else weight for path, weight in zip(files, weights, strict=True)]
    for number in range(truncations + flips):
        (path,) = dice.choices(files, weights)
        data = bytearray(path.read_bytes())
        place = dice.randrange(len(data))
        if number < truncations:
            yield path, bytes(data[:place])
        else:
            data[place] ^= 1 << dice.randrange(8)
            yield path, bytes(data)


class _Looking:
    """Asks a server everything about the runs."""

    def __init__(self, server: MassgenServer, victim: str, others: list[str]) -> None:
        self._server = server
        self._victim = victim
        self._others = others

    async def at_everything(self) -> dict[str, Any]:
        seen: dict[str, Any] = {"list": await self._ask("list_runs")}
        for run in seen["list"]["runs"]:
            del run["age"]
        for run in self._others:
            seen[run] = await self._ask("get_result", run_id=run, view="full")
        seen["status"] = await self._ask("get_status", run_id=self._victim)
        seen["result"] = await self._ask("get_result", run_id=self._victim, view="full")
        seen["agent"] = await self._ask("get_result", run_id=self._victim, view="agent", agent="agent_a")
        return seen

    async def _ask(self, tool: str, **arguments: Any) -> Any:
        try:
            reply: Any = await self._server.call_tool(tool, arguments)
        except Exception as error:
            raise AssertionError(f"{tool}: no typed error, but {error!r}") from error
        return text_of(reply) if reply.is_error else json.loads(json.dumps(reply.structured_content))


def _compare(seen: dict[str, Any], truth: dict[str, Any], where: str) -> str:
    """What was told of the victim: everything, or a part of it, or an error; raises if anything else was."""
    same: Callable[[str], bool] = lambda key: seen[key] == truth[key]  # noqa: E731 - shorter than its uses
    for key in truth:
        if key not in ("status", "result", "agent"):
            assert same(key), f"{where}: another run was affected: {seen[key]}"
    if same("status") and same("result") and same("agent"):
        return "whole"
    result = seen["result"]
    assert same("result") or (isinstance(result, str) and result.startswith("ERROR run_damaged: ")), (
        f"{where}: {result}"
    )
    status: dict[str, Any] | str = seen["status"]
    damaged = isinstance(status, dict) and str(status.get("reason")).startswith("run_damaged: ")
    assert damaged or str(status).startswith("ERROR run_damaged: "), f"{where}: {status}"
    one = seen["agent"]
    if isinstance(one, str):
        assert one.startswith(("ERROR run_damaged: ", "ERROR invalid_arguments: ", "ERROR not_finished: ")), one
        return "typed error"
    assert one["answer"] == truth["agent"]["answer"], f"{where}: {one['answer']}"
    assert one["reason"].startswith("run_damaged: "), f"{where}: {one}"
    return "part"
