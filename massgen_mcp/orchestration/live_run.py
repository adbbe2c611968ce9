"""The run that this process executes: its one `RunState`, its journal, where its answers are kept, whoever waits for a
change, and what a failure in one agent's work means.

Every fact passes through the journal, in one order; the state hears it before anybody else. Holds no facts of its own.
An agent that fails falls out, and nobody else is concerned. A failure of the machine's storage is no agent's: it is
passed on, and the run waits until there is room again.
"""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

import anyio

from massgen_mcp.coordination.agent_view import AgentView
from massgen_mcp.coordination.procedures import next_step
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.countdown import Countdown
from massgen_mcp.errors import BackendError, root_causes, storage_fault
from massgen_mcp.events.parts import BallotEntry, Changes, EventT
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import InputGiven
from massgen_mcp.money.reservations import Reservations
from massgen_mcp.run_state.caller import Caller
from massgen_mcp.run_state.state import RunState
from massgen_mcp.workspace.directory import Workspace

FaultReport = Callable[[BaseException], str]
"""Puts an error with its stack trace where the operator finds it; returns what an agent's record says about it."""


def name_only(error: BaseException) -> str:
    """What is said where no log is kept."""
    return f"{type(root_causes(error)[0]).__name__} in massgen-mcp"


def fault_of(error: Exception, report: FaultReport) -> BackendError:
    """Why the agent in whose work `error` was raised falls out; `internal` where no model or provider is to blame.

    Raises `error` again if it is the storage's.
    """
    if storage_fault(error) is not None:
        raise error
    causes = root_causes(error)
    failures = [cause for cause in causes if isinstance(cause, BackendError)]
    return failures[0] if len(failures) == len(causes) else BackendError("internal", report(error))


class StoredAnswer(NamedTuple):
    """An answer that is kept: its directory in that of the run, and what it changes of the base, if there is one."""

    path: str
    changes: Changes | None = None


class AnswerStore(Protocol):
    """Where answers are kept with the files that belong to them."""

    async def keep(self, attempt: int, agent: str, content: str, workspace: Workspace | None) -> StoredAnswer:
        """Keep an answer's text, a read-only snapshot of its workspace, and its patch."""
        ...

    async def keep_patch(self, agent: str, workspace: Workspace | None) -> Changes | None:
        """Keep the patch of a final answer: what the agent's workspace makes of the base now. None: there is none."""
        ...

    async def restore(self, agent: str, changes: Changes) -> None:
        """Make the agent's copies of the caller's files be what they were when it gave the answer with `changes`."""
        ...

    async def keep_final(
        self, agent: str, content: str, workspace: Workspace | None, changes: Changes | None
    ) -> Changes | None:
        """Keep the final answer; it is whole on disk before the run is called completed. Returns `changes` with the
        patch that was written.
        """
        ...

    def files(self, path: str) -> Path | None:
        """The snapshot directory of a kept answer; None if it has no files."""
        ...

    def patch(self, changes: Changes, most: int) -> str:
        """At most so many bytes of a kept patch, as text: of every file's difference the beginning."""
        ...


class Journal(Protocol):
    """The run's event log as orchestration sees it."""

    def listen(self, listener: Callable[[LogRecord], None]) -> None:
        """Call `listener` with every record from now on, in order, before anything else happens."""
        ...

    def record(self, event: EventT) -> EventT:
        """Append an event; its order among others is fixed now. Returns it as it is recorded: without keys."""
        ...

    async def settle(self) -> None:
        """Return when everything recorded so far would survive a power cut."""
        ...


WHOLE_RUN = ""
LITTLE = 0.2
"""An agent is told that its time is running out when so much of it is left."""


class _Limit(NamedTuple):
    limit: Countdown
    stands: Callable[[], bool]
    of: str | None

    def adjust(self) -> None:
        if self.stands():
            self.limit.stop()
        else:
            self.limit.go()


class LiveRun:
    def __init__(
        self, state: RunState, journal: Journal, *, asks_first: bool = False, report: FaultReport = name_only
    ) -> None:
        """`asks_first`: at the cap the caller decides, instead of the run coming to its end."""
        self.state = state
        self.reservations = Reservations(state.budget, asks_first=asks_first)
        self._journal = journal
        self._report = report
        self._changed = anyio.Event()
        self._limits: list[_Limit] = []
        journal.listen(state.apply)
        journal.listen(lambda _: self.look_at_limits())

    @property
    def coordination(self) -> Coordination:
        return self.state.coordination

    @property
    def caller(self) -> Caller:
        return self.state.caller

    def record(self, event: EventT) -> EventT:
        """Append an event to the journal, and so to the state. Continue with the event that is returned: a resumed run
        will read that one. If it decides the coordination or opens a stage, that is recorded right after it.
        """
        coordination, asked = self.coordination, self.caller.asked
        event = self._journal.record(event)
        if self.coordination is coordination and self.caller.asked is asked:
            return event
        self.decide()
        self.reservations.wake()
        self._changed.set()
        self._changed = anyio.Event()
        return event

    @property
    def asks(self) -> bool:
        """Whether a person is asked: how long they think is no part of any round's time."""
        return self.caller.asked is not None

    @property
    def awaits_caller(self) -> bool:
        """Whether nobody begins a call, and nothing is decided, until that person has: they did not say to finish."""
        return self.asks and not self.coordination.finish_requested

    def decide(self) -> None:
        """Record what is due: the process that should have done so may have been lost just then."""
        while not self.awaits_caller and (due := next_step(self.coordination)):
            self._journal.record(due)

    @contextmanager
    def limited(self, limit: Countdown, stands: Callable[[], bool], *, of: str | None = None) -> Generator[None]:
        """End the block when the time of `limit` is up; its clock stands while `stands()`, as of the latest event.

        `of`: the agent whose work it limits, or `WHOLE_RUN`, or neither.
        """
        entry = _Limit(limit, stands, of)
        with limit:
            self._limits.append(entry)
            entry.adjust()
            try:
                yield
            finally:
                self._limits.remove(entry)

    def look_at_limits(self) -> None:
        """Let clocks stand or go as they should now, where no event says so."""
        for entry in self._limits:
            entry.adjust()

    def seconds_left(self, agent: str) -> float | None:
        """What the agent's work has left, where that is little of its own limit or of the run's."""
        limits = [entry.limit for entry in self._limits if entry.of in (agent, WHOLE_RUN)]
        return min((one.left for one in limits if one.left < LITTLE * one.seconds), default=None)

    def files_of(self, entries: Iterable[BallotEntry], answer_store: AnswerStore) -> dict[str, Path]:
        """The snapshot directories of a ballot's answers by neutral name, for those that have files."""
        paths = {answer.label: answer.path for answer in self.state.current_answers if answer.path}
        found = {entry.name: answer_store.files(paths[entry.label]) for entry in entries if entry.label in paths}
        return {name: files for name, files in found.items() if files is not None}

    def fault(self, error: Exception) -> BackendError:
        """Return why the agent in whose work `error` was raised is dropped (see `fault_of`); log the trace."""
        return fault_of(error, self._report)

    def drop(self, agent: str, fault: BackendError, changes: Changes | None = None) -> None:
        """Record that this agent takes part no more, and what its copies hold; what it asked need not be answered."""
        self.record(AgentView(self.coordination, agent).drop(fault.reason, str(fault), changes, fault.limit))
        asked = self.caller.asked
        if asked is not None and asked.agent == agent:
            self.record(InputGiven(kind=asked.kind, text="its agent was dropped"))

    async def settle(self) -> None:
        await self._journal.settle()

    async def change(self) -> None:
        """Return at the next change of the coordination, or of what the caller is asked."""
        await self._changed.wait()
