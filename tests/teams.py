"""Teams of scripted agents in this process: the engine's front door for tests that need no second process."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.config import Config
from massgen_mcp.events.parts import Event
from massgen_mcp.events.record import LogRecord
from massgen_mcp.request.question import EarlierTurn
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import Action, FrozenRequest, RunFiles
from massgen_mcp.runs.host.execute import RunContext, RunHandle, RunObserver, execute_run
from tests.harness import after

EventT = TypeVar("EventT", bound=Event)

Script = Sequence[dict[str, Any]]


def team(
    *scripts: Script, orchestrator: dict[str, Any] | None = None, timeouts: dict[str, Any] | None = None
) -> Config:
    """A config with one scripted agent per script."""
    return config_from_data(
        {
            "agents": [{"backend": {"type": "scripted", "script": list(script)}} for script in scripts],
            "orchestrator": orchestrator or {},
            "timeout_settings": timeouts or {},
        },
        "test",
        environ={},
    )


def silent_team(size: int) -> Config:
    """Agents without a script: each answers once, votes for the first answer on its ballot, and presents its own."""
    scripts: list[Script] = [[] for _ in range(size)]
    return team(*scripts)


@dataclass
class Ended:
    """A run that has ended: what it looks like, everything that happened, and where it lies."""

    snapshot: RunState
    records: list[LogRecord]
    directory: RunFiles

    @property
    def events(self) -> list[Event]:
        return [record.event for record in self.records]

    def of(self, kind: type[EventT], agent: str | None = None) -> list[EventT]:
        """The events of one kind, of one agent if asked."""
        return [e for e in self.events if isinstance(e, kind) and agent in (None, getattr(e, "agent", None))]


class Never(Event):
    """An event that does not happen."""


class Act:
    """Something to do in the middle of a run: `when` an event (`which` of its kind) comes by, `do` it, once."""

    def __init__(self, when: type[EventT], do: Action, which: Callable[[EventT], bool] = lambda _: True) -> None:
        self._when: Callable[[object], bool] = lambda event: isinstance(event, when) and which(event)
        self._do: Action = do
        self._handle: RunHandle | None = None

    def started(self, handle: RunHandle) -> None:
        self._handle = handle

    def heard(self, record: LogRecord) -> None:
        if self._when(record.event) and self._handle is not None:
            handle, self._handle = self._handle, None
            handle.do(self._do)


def upon(path: Path, kind: str, times: int = 1) -> dict[str, Any]:
    """Part of a step of a script for `run_team` below `path`: taken when so many events of this kind have been."""
    return after(path / "happened" / f"{kind}.{times}")


class Observer(RunObserver):
    """Hands the handle of a run and each of its records to the functions that are given."""

    def __init__(
        self,
        *,
        on_start: Callable[[RunHandle], None] = lambda _: None,
        on_record: Callable[[LogRecord], None] = lambda _: None,
    ) -> None:
        self._on_start, self._on_record = on_start, on_record

    def on_start(self, handle: RunHandle) -> None:
        self._on_start(handle)

    def on_record(self, record: LogRecord) -> None:
        self._on_record(record)


async def run_team(
    path: Path,
    config: Config,
    *,
    question: str = "What is six times seven?",
    act: Act | None = None,
    history: tuple[EarlierTurn, ...] = (),
    environ: Mapping[str, str] | None = None,
) -> Ended:
    """Execute a run below `path` and read it back from its journal."""
    directory = RunFiles.create(path / "run", FrozenRequest(question, config, history=history))
    act = act or Act(Never, "cancel")
    times, happened = Counter[str](), path / "happened"
    happened.mkdir(parents=True, exist_ok=True)

    def heard(record: LogRecord) -> None:
        kind = record.event.type
        times[kind] += 1
        (happened / f"{kind}.{times[kind]}").touch()
        act.heard(record)

    observer = Observer(on_start=act.started, on_record=heard)
    snapshot = await execute_run(directory, "run-test", RunContext(environ or {}, observer))
    return Ended(snapshot, directory.event_log.read(), directory)
