"""`kill -9` of the runner beside commands, checks, MCP servers, nested runs and sessions: is what was sent charged?

The model counts its requests. A run is charged for its replies, and for what it takes to be lost; runs that are nested
in it are a part of that. A call of which the model had heard nothing yet when its runner was killed may be charged,
too: nobody can know that it was not sent.
"""

import json
import random
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import anyio

from massgen_mcp.config.loader import load_config
from massgen_mcp.events.agent_work import ModelCallStarted
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import NestedRunStarted
from massgen_mcp.home import Home
from massgen_mcp.request.team import Team
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import local_engine
from tests.commands import starting_by
from tests.harness import RUNNER_MODULE, TempHome, end
from tests.run_requests import run_request
from tests.soak.counting_model import INPUT_TOKENS, CountingModel, Step, counting_model
from tests.soak.kills import await_end, left_behind, records_of

SERVER = Path(__file__).parents[1] / "mcp_servers" / "double.py"
INTERPRETER = sys.executable
"""Of the MCP servers, which bring one of their own."""
MODEL_SECONDS = 0.1
PRICE = 1_000.0
"""US dollars for a million tokens of input."""
MOST_REQUESTS = 25
"""So many requests of a batch at most are waited for before a kill."""
SCRIPTS: dict[str, list[Step]] = {
    "commands": [("run_command", {"command": "sleep 0.2; echo done > out.txt"}), ("run_command", {"command": "cat *"})],
    "checks": [("write_file", {"path": "project/notes", "content": "told"})],
    "servers": [("ping", {}), ("ping", {})],
    "nested": [("delegate", {"question": "Is it so?"}), ("get_status", {"wait_seconds": 20}), ("get_result", {})],
    "session": [],
}
"""What the agents of each kind of run do before they answer."""


@dataclass
class Bill:
    """What the model was sent, and what runs were charged. Everything after `never_sent` must be 0."""

    kills: int = 0
    runs: int = 0
    cancelled: int = 0
    """Of them, after the kill."""
    resumed: int = 0
    sent: int = 0
    """Requests that the model had."""
    charged: int = 0
    replies: int = 0
    """Of what is charged."""
    lost: int = 0
    """Of what is charged."""
    never_sent: int = 0
    """Charged calls that had begun when a runner was killed, and of which the model had heard nothing yet."""
    uncharged: int = 0
    """Requests that no run was charged for, whole or in part."""
    overcharged: int = 0
    """Calls that were charged and had never begun."""
    above_cap: int = 0
    unended: int = 0
    orphans: int = 0
    causes: list[str] = field(default_factory=list[str])

    def judged(self) -> str:
        """The figures. Raises `AssertionError` if one of those that must be 0 is not."""
        figures = asdict(self)
        causes = figures.pop("causes")
        told = "; ".join([", ".join(f"{name} {value}" for name, value in figures.items()), *causes])
        assert self.uncharged + self.overcharged + self.above_cap + self.unended + self.orphans == 0, told
        return told


async def kill_charges(home: TempHome, *, kills: int, seed: int) -> str:
    """Start a run of each kind, kill their runner at a random moment, cancel some, let the others come to their end;
    `kills` times. Returns the figures.
    """
    bill, project = Bill(), _project(home.work / "project")
    async with _stage(home) as (model, service):
        for trial in range(kills):
            chance = random.Random(f"{seed}/{trial}")
            before, marks = model.sent.total(), dict[str, str]()
            for kind in SCRIPTS:
                mark = f"<<{kind}.{trial}>>"
                marks[(await _started(home, service, model, kind, mark, project, seed))] = mark
            await _moment(model, before, chance, in_flight=trial % 2 == 0)
            for pid in home.processes(RUNNER_MODULE):
                end(pid, signal.SIGKILL)
            bill.kills += 1
            for run_id in marks:
                if chance.random() < 0.3:
                    await service.control(run_id, "cancel")
            for run_id, mark in marks.items():
                await await_end(service, run_id)
                await _judge(home, service, run_id, mark, model.sent[mark], bill)
        bill.orphans += await left_behind(home)
    return bill.judged()


async def _moment(model: CountingModel, before: int, chance: random.Random, *, in_flight: bool) -> None:
    """Let a random share of the requests come in, and a random moment pass; then wait for one `in_flight`, if so."""
    wanted = before + chance.randint(1, MOST_REQUESTS)
    with anyio.move_on_after(60):
        while model.sent.total() < wanted:
            await anyio.sleep(0.005)
    await anyio.sleep(chance.uniform(0, 2 * MODEL_SECONDS))
    with anyio.move_on_after(60):
        while in_flight and not model.answering:
            await anyio.sleep(0.005)


@asynccontextmanager
async def _stage(home: TempHome) -> AsyncGenerator[tuple[CountingModel, RunService]]:
    async with counting_model(SCRIPTS, MODEL_SECONDS) as model:
        service = RunService(local_engine(Home(home.path, runner_idle_seconds=2)), home.environ)
        try:
            with starting_by(home.python):
                yield model, service
        finally:
            service.close()


def _project(place: Path) -> Path:
    """A repository of a person's, with a check."""
    place.mkdir()
    (place / "notes").write_text("nothing\n")
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=p", "-c", "user.email=p", "commit", "-qm", "c"]):
        subprocess.run(["git", *command], cwd=place, check=True)
    return place


async def _started(
    home: TempHome, service: RunService, model: CountingModel, kind: str, mark: str, project: Path, seed: int
) -> str:
    """The id of a run of this kind, each agent of which bears the mark."""
    backend: dict[str, Any] = {"type": "chatcompletion", "model": "local", "base_url": model.base_url}
    backend["price"] = {"input_usd_per_million": PRICE, "output_usd_per_million": 2 * PRICE}
    if kind == "servers":
        plain = {"command": INTERPRETER, "args": ["-I", "-S", str(SERVER), "server"], "sandbox": False}
        backend["mcp_servers"] = {"odd": {**plain, "start_seconds": 300}}
    team = [{"id": f"a{place}", "backend": backend, "system_message": mark} for place in (1, 2)]
    orchestrator = {
        "commands": {"commands": {"enabled": True}},
        "checks": {"context_paths": [{"path": str(project)}], "checks": ["grep -q told notes"]},
    }
    settings: dict[str, Any] = {"orchestrator": orchestrator.get(kind, {}), "budget": {"max_usd": 1_000}}
    if kind == "nested":
        settings["nested"] = {"max_depth": 1, "max_runs": 3, "share_of_budget": 0.5}
    path = home.work / "team.yaml"
    path.write_text(json.dumps({"agents": team, **settings}))
    config = load_config(path, environ={})
    session = f"session-{seed}" if kind == "session" else None
    asked = run_request(f"What is it, of {mark}?", Team(config, "charges", home.environ), session_id=session)
    view, _ = await service.start(await service.prepare(asked))
    return view.row.run_id


async def _judge(home: TempHome, service: RunService, run_id: str, mark: str, sent: int, bill: Bill) -> None:
    state, begun = (await service.watcher.get_run(run_id)).snapshot, _begun(home, records_of(home, run_id))
    spent = state.spent
    for nested in state.open_nested_runs:  # of a run that was cancelled when nobody worked on it
        spent += (await service.watcher.get_run(nested.run_id)).snapshot.spent
    charged = spent.calls + spent.lost_calls
    bill.runs, bill.sent, bill.charged = bill.runs + 1, bill.sent + sent, bill.charged + charged
    bill.replies, bill.lost = bill.replies + spent.calls, bill.lost + spent.lost_calls
    bill.cancelled += state.state == "cancelled"
    bill.resumed += bool(state.resumed)
    bill.unended += state.state not in TERMINAL_STATES
    bill.never_sent += max(0, charged - sent)
    bill.overcharged += max(0, charged - begun)
    bill.above_cap += spent.usd > state.budget.max_usd
    money = spent.usd * 1e6 / PRICE / INPUT_TOKENS
    bill.uncharged += (missing := max(0, sent - charged, sent - int(money + 1e-6)))
    if missing or charged > begun or state.state not in TERMINAL_STATES:
        bill.causes.append(f"{mark}: {_told(state)}, sent {sent}, charged {charged}, begun {begun}, money {money:.1f}")


def _told(state: RunState) -> str:
    return f"{state.state}, resumed {state.resumed}, in flight {[*state.resume_point.in_flight.values()]}"


def _begun(home: TempHome, records: list[LogRecord]) -> int:
    """How often a model call was begun in a run and in those that are nested in it."""
    own = sum(isinstance(record.event, ModelCallStarted) for record in records)
    nested = [record.event.run_id for record in records if isinstance(record.event, NestedRunStarted)]
    return own + sum(_begun(home, records_of(home, run_id)) for run_id in nested)
