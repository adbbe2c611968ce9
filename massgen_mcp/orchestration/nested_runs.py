"""The runs that are started inside a run: each of them once, within the budget, and none goes on after it.

Must not know where runs are kept nor who executes them: that is the host's.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import anyio.abc

from massgen_mcp.config.models.orchestrator import NestedConfig
from massgen_mcp.errors import ErrorCode, MassgenError, storage_fault
from massgen_mcp.events.parts import Spent
from massgen_mcp.events.run import NestedRunEnded, NestedRunStarted
from massgen_mcp.money.budget import Caps, caps_of_next, left_for_nested
from massgen_mcp.orchestration.live_run import LiveRun
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.tools.base import ToolRefused
from massgen_mcp.views.spent import dollars
from massgen_mcp.workspace.directory import Workspace
from massgen_mcp.workspace.guard import PathRefused

logger = logging.getLogger("massgen_mcp.run")

AGAIN_SECONDS = 2.0
"""After so long a store that could not be asked is asked again."""
FOLLOW_SECONDS = 3600.0
"""So long one look for the end of a nested run lasts."""
END_SECONDS = 20.0
"""So long the end of a cancelled run is waited for before its caps stand for what it cost."""
NOT_SHOWN = frozenset({"private"})
"""Of a run's directory: the homes of agents that are programs of their own."""
GONE: frozenset[ErrorCode] = frozenset({"unknown_run", "expired", "run_damaged"})
"""What is said of a run that nobody can go on with."""


@dataclass(frozen=True, slots=True)
class NestedRunRequest:
    """What a caller says of a run that it starts inside another one. `config`: a ready-made team by name; `written`: a
    config as its agent wrote it; neither: the team of the run itself.
    """

    question: str
    config: str | None = None
    written: bytes | None = None
    max_usd: float | None = None
    max_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class PreparedNestedRun:
    """A run whose request is frozen. `caps` are its own, at most what it was allowed."""

    run_id: str
    question: str
    source: str
    caps: Caps


class NestedHost(Protocol):
    """Who keeps and executes the runs that are started inside one run. Everything raises `MassgenError`."""

    async def prepare(self, wanted: NestedRunRequest, caps: Caps, seconds: float, key: str) -> PreparedNestedRun:
        """Freeze the request of a new run, which nobody executes yet; or find what was frozen by this key before."""
        ...

    async def prepared(self, run_id: str) -> PreparedNestedRun:
        """What a program that runs inside this run has frozen."""
        ...

    async def begin(self, run_id: str) -> None:
        """See to it that the run is executed. Safe to repeat, also in another process."""
        ...

    async def refuse(self, run_id: str, reason: str) -> None:
        """Let a run that was not begun end as failed."""
        ...

    async def look(self, run_id: str) -> RunState: ...

    async def wait(self, run_id: str, seconds: float) -> RunState:
        """The run when it has ended, or cannot go on now, or after so many seconds."""
        ...

    async def cancel(self, run_id: str) -> None: ...

    async def files(self, run_id: str) -> Path:
        """Its directory."""
        ...


class NestedRuns:
    """One per run. `open` it with the run, `attend` it as long as the run goes on, `end_all` before the run ends."""

    def __init__(self, host: NestedHost, nested: NestedConfig, *, run_seconds: float, round_seconds: float) -> None:
        """The time limits are those of the run: whoever waits for a nested run is in a round."""
        self._host = host
        self._nested = nested
        self._run_seconds = run_seconds
        self._round_seconds = round_seconds
        self._one_at_a_time = anyio.Lock()
        self._run: LiveRun | None = None
        self._workspaces: Sequence[Workspace] = ()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._ending = False

    def open(self, live_run: LiveRun, workspaces: Sequence[Workspace]) -> None:
        """`workspaces`: in which the directories of nested runs can be read."""
        self._run, self._workspaces = live_run, workspaces
        for workspace in workspaces:
            workspace.set_runs({})

    @property
    def _live_run(self) -> LiveRun:
        if self._run is None:
            raise ToolRefused("the run does not start others yet; try again")
        return self._run

    @property
    def known(self) -> Mapping[str, NestedRunStarted]:
        """Those that were started, by id."""
        return self._live_run.state.nested_runs

    async def show_files(self) -> None:
        """Let the agents read the directories of the runs that were started, as far as they are there."""
        shown: dict[str, Path] = {}
        for run_id in self.known:
            with suppress(MassgenError):
                shown[run_id] = await self._host.files(run_id)
        shown = {run_id: path for run_id, path in shown.items() if path.is_dir()}
        for workspace in self._workspaces:
            with suppress(PathRefused):  # those that were shown stay
                workspace.set_runs(shown, without=NOT_SHOWN)

    async def attend(self) -> None:
        """Follow the runs that go on, until it is cancelled; how each ends is recorded."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            for started in self._live_run.state.open_nested_runs:
                tasks.start_soon(self._follow, started)
            await anyio.sleep_forever()

    async def start(self, agent: str, key: str, wanted: NestedRunRequest) -> NestedRunStarted:
        """The run that is started by the call of this key: the one of an earlier process, if there is one. That it is
        started is durable before anybody executes it. Raises `ToolRefused`.
        """
        async with self._one_at_a_time:
            if earlier := next((one for one in self.known.values() if one.key == key), None):
                return earlier  # `attend` sees to it
            caps = self._caps(wanted.max_usd)
            reservations = self._live_run.reservations
            reservations.hold(key, caps)
            try:
                prepared = await self._host.prepare(wanted, caps, self._seconds_left, key)
            except MassgenError as error:
                raise ToolRefused(f"the run was not started: {error}") from None
            finally:
                reservations.release(key)
            if not prepared.caps.amounts.is_within(caps.amounts):
                self._check_room(prepared.caps)  # an earlier process had prepared it, with more to spend then
            started = self._live_run.record(_started(agent, key, prepared))
            await self._begin(started)
            return started

    async def admit(self, run_id: str) -> None:
        """Let a run begin that a program inside this run has prepared, or refuse it. Safe to repeat. Raises
        `MassgenError` where the storage fails.
        """
        async with self._one_at_a_time:
            if run_id in self.known:
                return
            try:
                await self._admit(run_id)
            except MassgenError as error:
                if storage_fault(error) is not None:
                    raise
                logger.warning("%s cannot be admitted: %s", run_id, error)

    async def look(self, run_id: str, wait_seconds: float = 0) -> RunState:
        """A run that was started here, when it has ended or after so many seconds; without an id the latest one. Raises
        `ToolRefused`.
        """
        if not self.known:
            raise ToolRefused("no run was started here yet")
        run_id = run_id or [*self.known][-1]
        if run_id not in self.known:
            raise ToolRefused(f"{run_id[:60]!r} is no run that was started here; there are: {', '.join(self.known)}")
        try:
            return await (self._host.wait(run_id, wait_seconds) if wait_seconds else self._host.look(run_id))
        except MassgenError as error:
            raise ToolRefused(str(error)) from None

    async def end_all(self) -> None:
        """Cancel what goes on: nobody would read it. What all of them cost is recorded when this returns, and no other
        is started any more.
        """
        self._ending = True
        async with anyio.create_task_group() as tasks:
            for started in self._live_run.state.open_nested_runs:
                tasks.start_soon(self._end, started)

    # -- plumbing -------------------------------------------------------------------------------------------------

    async def _admit(self, run_id: str) -> None:
        prepared = await self._host.prepared(run_id)
        try:
            self._check_room(prepared.caps)
        except ToolRefused as refused:
            await self._host.refuse(run_id, str(refused))
        else:
            await self._begin(self._live_run.record(_started(None, run_id, prepared)))

    async def _begin(self, started: NestedRunStarted) -> None:
        await self._live_run.settle()
        await self.show_files()
        with suppress(MassgenError):  # whoever follows it tries again
            await self._host.begin(started.run_id)
        if self._tasks is not None:
            self._tasks.start_soon(self._follow, started)

    async def _follow(self, started: NestedRunStarted) -> None:
        while started.run_id not in self._live_run.state.nested_ends:
            try:
                await self._host.begin(started.run_id)
                state = await self._host.wait(started.run_id, FOLLOW_SECONDS)
            except MassgenError as error:
                if error.code in GONE:
                    await self._note_end(started, None)
            else:
                if state.state in TERMINAL_STATES:
                    await self._note_end(started, state)
                    return
            await anyio.sleep(AGAIN_SECONDS)

    async def _end(self, started: NestedRunStarted) -> None:
        state = None
        with suppress(MassgenError):
            await self._host.cancel(started.run_id)
            state = await self._host.wait(started.run_id, END_SECONDS)
        await self._note_end(started, state)

    async def _note_end(self, started: NestedRunStarted, state: RunState | None) -> None:
        """`state`: None, or of a run that has not ended: what it cost is unknown, so its caps stand for it."""
        if started.run_id in self._live_run.state.nested_ends:
            return
        ended = None if state is None else state.as_nested()
        if ended is None:
            spent = Spent(usd=started.max_usd, input_tokens=started.max_tokens, unpriced_calls=started.max_calls)
            ended = NestedRunEnded(run_id=started.run_id, state="cancelled", spent=spent)
        self._live_run.record(ended)
        self._live_run.reservations.wake()
        for mark in self._live_run.reservations.due():
            self._live_run.record(mark)
        await self._live_run.settle()

    def _caps(self, wanted_usd: float | None) -> Caps:
        """Of the next run."""
        self._check_open()
        run = self._live_run
        free = run.reservations.free()
        caps = caps_of_next(run.state.budget, self._nested, len(self.known), free, wanted_usd)
        if caps is None:
            raise ToolRefused(f"the budget for nested runs is used up: {self._left()}; answer with what you have")
        return caps

    def _check_room(self, caps: Caps) -> None:
        """For a run that has its caps already."""
        self._check_open()
        left = left_for_nested(self._live_run.state.budget, self._nested)
        free = self._live_run.reservations.free()
        if not (caps.amounts.is_within(left.amounts) and caps.amounts.is_within(free)):
            raise ToolRefused(f"its budget does not fit into what is left for nested runs: {self._left()}")

    def _check_open(self) -> None:
        run, started = self._live_run, len(self.known)
        if started >= self._nested.max_runs:
            message = f"this run has started {started} runs, and may start no more (max_runs)"
            raise ToolRefused(f"{message}; answer with what you have")
        ending = self._ending or run.state.end is not None
        if ending or run.coordination.closing or run.coordination.finish_requested:
            raise ToolRefused("this run comes to its end, and starts no more runs; answer with what you have")

    def _left(self) -> str:
        left = left_for_nested(self._live_run.state.budget, self._nested)
        share = f"{self._nested.share_of_budget:.0%} of the budget (share_of_budget)"
        return f"of {share} {dollars(left.usd)} and {left.tokens:,} tokens are left"

    @property
    def _seconds_left(self) -> float:
        left = self._run_seconds - self._live_run.state.resume_point.seconds
        return max(1.0, min(left, self._round_seconds))


def _started(agent: str | None, key: str, prepared: PreparedNestedRun) -> NestedRunStarted:
    return NestedRunStarted(
        agent=agent,
        key=key,
        run_id=prepared.run_id,
        question=prepared.question,
        source=prepared.source,
        max_usd=prepared.caps.usd,
        max_tokens=prepared.caps.tokens,
        max_calls=prepared.caps.calls,
    )
