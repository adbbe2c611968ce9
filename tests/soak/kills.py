"""`kill -9` at random moments, of the runner and of the server: is anything lost, doubled, torn or left behind?

The model is a process of its own that remembers every request, so that what was really asked is known and not only what
we recorded. Every trial is decided by its seed.
"""

import json
import math
import random
import signal
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import anyio

from benchmarks.local_model import NAME, LocalModel
from massgen_mcp.config.loader import load_config
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.agent_work import ModelCallStarted, ModelReplied
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import RunCompleted, RunResumed
from massgen_mcp.home import Home
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.engine.journal import JournalReader
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import local_engine
from tests.harness import PATIENCE_SECONDS, RUNNER_MODULE, TempHome, end, poll_until, raw_server
from tests.run_requests import asked

AGENTS = 3
TEAM = "team.yaml"
RUNS_PER_KILL = 4
FOLLOWERS = 25
"""Of each run."""
MODEL_SECONDS = 0.05
REQUESTS = RUNS_PER_KILL * (2 * AGENTS + 1)
"""How often a batch of runs asks the model: an answer and a vote of each agent, and one presentation."""
LATEST_SERVER_KILL = 0.15
"""Seconds within which a server is killed: after `start_run` was sent, or after it was acknowledged."""


@dataclass
class Toll:
    """What the kills did. Everything after `repeated` must be 0."""

    kills: int = 0
    runs: int = 0
    resumed: int = 0
    """Runs that another runner went on with."""
    repeated: int = 0
    """Model calls that were made twice, and marked so: allowed, each once."""
    lost: int = 0
    """Runs that were acknowledged and did not end with an answer."""
    doubled: int = 0
    """Runs, replies or events that are there twice, or calls asked more often than is marked."""
    torn: int = 0
    """Journals that cannot be read, or have gaps."""
    orphans: int = 0
    """Processes that are left when all is done."""
    unheard: int = 0
    """Followers of a run who did not hear of its end."""
    last_words: list[str] = field(default_factory=list[str])
    """How the lost runs ended."""

    @property
    def harm(self) -> int:
        """Of all that must be 0; more kills would not make it less."""
        return self.lost + self.doubled + self.torn + self.orphans + self.unheard

    def judged(self) -> str:
        """The figures. Raises `AssertionError` if one of those that must be 0 is not."""
        told = ", ".join(f"{name} {value}" for name, value in asdict(self).items() if name != "last_words")
        told = "; ".join([told, *self.last_words])
        assert self.harm == 0, told
        return told


async def kill_runners(home: TempHome, *, kills: int, seed: int, patience: float = PATIENCE_SECONDS) -> str:
    """Start runs, kill their runner at a random moment, let them come to their end; `kills` times. A hundred follow
    them all the while, for at most `patience` seconds after the end of their runs.
    """
    toll = Toll()
    async with _stage(home) as (model, service, config):
        for trial in range(kills):
            chance = random.Random(f"{seed}/{trial}")
            model.reset()
            runs: list[str] = []
            for place_in_batch in range(RUNS_PER_KILL):
                question = f"trial {trial}, run {place_in_batch}"
                view, _ = await service.start(await service.prepare(asked(question, config, source="kills")))
                runs.append(view.row.run_id)
            async with anyio.create_task_group() as followers:
                for run_id in runs * FOLLOWERS:
                    followers.start_soon(_follow, service, run_id, toll)
                await moment(model, chance)
                for pid in home.processes(RUNNER_MODULE):
                    end(pid, signal.SIGKILL)
                toll.kills += 1
                for run_id in runs:
                    await await_end(service, run_id)
                    judge(RunFiles(home.run_directory(run_id)), toll)
                followers.cancel_scope.deadline = anyio.current_time() + patience
            started = _started(home, runs)
            if any(count > 2 for count in Counter(model.bodies()).values()) or len(model.bodies()) > started:
                toll.doubled += 1
            if toll.harm:
                break
        toll.orphans += await left_behind(home)
    return toll.judged()


async def kill_servers(home: TempHome, *, kills: int, seed: int) -> str:
    """Start a run through a server that is killed at a random moment, then ask for the same run again."""
    toll = Toll()
    async with _stage(home) as (_, service, config):
        path = str(home.own_configs / TEAM)
        for trial in range(kills):
            chance = random.Random(f"{seed}/{trial}")
            question, key = f"trial {trial}", f"key-{trial}"
            acknowledged: list[str] = []

            async def ask(
                question: str = question, key: str = key, told: list[str] = acknowledged, chance: random.Random = chance
            ) -> None:
                async with raw_server(home) as server, anyio.create_task_group() as tasks:
                    if chance.random() < 0.5:
                        tasks.start_soon(kill, server.process.pid, chance)
                    arguments = {"question": question, "config": path, "idempotency_key": key}
                    with suppress(anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError):
                        reply = await server.ask("tools/call", name="start_run", arguments=arguments)
                        told.append(str(reply["result"]["structuredContent"]["run_id"]))
                    await kill(server.process.pid, chance)

            async def kill(pid: int, chance: random.Random) -> None:
                await anyio.sleep(chance.uniform(0, LATEST_SERVER_KILL))
                end(pid, signal.SIGKILL)

            await ask()
            toll.kills += 1
            view, _ = await service.start(await service.prepare(asked(question, config, source=path, key=key)))
            if acknowledged and acknowledged != [view.row.run_id]:
                toll.lost += 1
            await await_end(service, view.row.run_id)
            judge(RunFiles(home.run_directory(view.row.run_id)), toll)
            rows = await service.watcher.list_runs(limit=10 * kills)
            toll.doubled += max(0, len(rows) - toll.kills)
            if toll.harm:
                break
        toll.orphans += await left_behind(home)
    return toll.judged()


def twin_of(home: TempHome, name: str) -> TempHome:
    """The same home, whose processes have a known-bad part in them (see `twins/`)."""
    return home.with_variables(PYTHONPATH=str(Path(__file__).parent / "twins" / name))


@asynccontextmanager
async def _stage(home: TempHome) -> AsyncGenerator[tuple[LocalModel, RunService, Config]]:
    with LocalModel(MODEL_SECONDS) as model:
        config = load_config(write_team(home.own_configs / TEAM, model.base_url), environ={})
        service = RunService(local_engine(Home(home.path, runner_idle_seconds=2)), home.environ)
        try:
            yield model, service, config
        finally:
            service.close()


async def _follow(service: RunService, run_id: str, toll: Toll) -> None:
    heard = False
    try:
        view = await service.watcher.wait(run_id, until="terminal", seconds=math.inf, cursor=None)
        heard = view.state in TERMINAL_STATES
    finally:
        toll.unheard += not heard


async def moment(model: LocalModel, chance: random.Random, requests: int = REQUESTS) -> None:
    """Let a random share of the requests come in, and a random moment pass; however busy the machine is."""
    wanted = chance.randint(0, requests)
    with anyio.move_on_after(30):
        while len(model.bodies()) < wanted:
            await anyio.sleep(0.005)
    await anyio.sleep(chance.uniform(0, 2 * MODEL_SECONDS))


def write_team(path: Path, base_url: str) -> Path:
    """Agents that can be told apart by their requests. They vote, and write no scripts."""
    backend = {"type": "chatcompletion", "model": NAME, "base_url": base_url}
    names = [f"agent{place}" for place in range(1, AGENTS + 1)]
    agents = [{"id": name, "backend": backend, "system_message": name} for name in names]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"agents": agents, "orchestrator": {"decide": "vote"}}))
    return path


async def await_end(service: RunService, run_id: str) -> None:
    """Wait until the run has ended and all its files are written."""
    with anyio.move_on_after(90):
        while (
            await service.watcher.wait(run_id, until="terminal", seconds=5, cursor=None)
        ).row.state not in TERMINAL_STATES:
            await anyio.sleep(0.02)  # its last files are being written


def records_of(home: TempHome, run_id: str) -> list[LogRecord]:
    return JournalReader(home.run_directory(run_id) / "events.jsonl").read()


def judge(run: RunFiles, toll: Toll) -> None:
    toll.runs += 1
    try:
        records = run.event_log.read()
        for name in ("status.json", "config.json", "coordination_events.json"):
            json.loads((run.path / name).read_text())
    except (MassgenError, OSError, ValueError):
        toll.torn += 1
        return
    events = [record.event for record in records]
    toll.torn += [record.seq for record in records] != list(range(1, len(records) + 1))
    ends = [event for event in events if isinstance(event, RunCompleted)]
    if not ends or not isinstance(events[-1], RunCompleted):
        toll.lost += 1
        toll.last_words.append(repr(events[-1])[:300])
    toll.doubled += len(ends) > 1
    toll.resumed += any(isinstance(event, RunResumed) for event in events)
    replied = Counter(event.call_id for event in events if isinstance(event, ModelReplied))
    toll.doubled += any(count > 1 for count in replied.values())
    started = Counter(event.call_id for event in events if isinstance(event, ModelCallStarted))
    repeated = [event.call_id for event in events if isinstance(event, ModelCallStarted) and event.repeated]
    toll.repeated += len(repeated)
    toll.doubled += any(count > 1 + repeated.count(call) for call, count in started.items())


def _started(home: TempHome, runs: list[str]) -> int:
    """How many calls the journals of these runs own up to."""
    counts = 0
    for run_id in runs:
        try:
            counts += sum(isinstance(record.event, ModelCallStarted) for record in records_of(home, run_id))
        except MassgenError:
            continue
    return counts


async def left_behind(home: TempHome) -> int:
    """How many processes stay when nobody wants anything any more."""
    await anyio.to_thread.run_sync(lambda: poll_until(lambda: not home.processes(), 20, or_fail=False))
    return len(home.processes())
