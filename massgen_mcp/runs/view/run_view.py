"""A run as it is at one moment, for whoever looks at it from outside: its row, its events, its files; and again
whenever there is something new in it, for whoever waits for that.
"""

import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from threading import Lock

import anyio

from massgen_mcp.errors import JournalNewer, MassgenError
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import TERMINAL_STATES, RunStatus
from massgen_mcp.runs.engine import (
    CallerAnswer,
    Engine,
    EventReader,
    Liveness,
    RunFiles,
    RunRow,
    unknown_run,
)
from massgen_mcp.runs.store.retention import expired_run
from massgen_mcp.workspace.guard import safe_id

LOOK_SECONDS = (0.25, 1.0)
"""How often a run is looked at of which nobody tells news: at first, and at most."""
SAFETY_SECONDS = 30.0
"""After so long a run is looked at even if nothing was told of it."""

NO_WORKER = "no worker is alive"
"""How `held_up_by` begins where runs are for workers, and it is not for the caller to do something."""


@dataclass(frozen=True, slots=True)
class RunView:
    """A run at one moment: its row, its snapshot, its files.

    `damage`: what is wrong with its record; the snapshot holds what came before that. `ahead`: how many queued runs are
    before this one while it is queued itself. `note`: what its start had to say about its session.
    """

    row: RunRow
    snapshot: RunState
    directory: RunFiles
    held_up_by: str | None = None
    """Why an interrupted or queued run does not go on by itself; None where a runner is there or on its way."""
    damage: MassgenError | None = None
    ahead: int = 0
    note: str = ""
    newer: JournalNewer | None = None
    """Why nobody here may work on it: a newer version did, and the snapshot may lack what only that one knows."""

    @property
    def state(self) -> RunStatus:
        return self.snapshot.state

    @property
    def ended(self) -> bool:
        return self.state in TERMINAL_STATES

    @property
    def held_back_by(self) -> str | None:
        """Why its runner leaves a run that could go on in the queue; None if it does not."""
        waits = self.row.state in ("queued", "interrupted") and not self.row.moved
        return self.row.held_back_by if waits else None

    @property
    def stands_still(self) -> bool:
        """Whether waiting for it is in vain, for now: it has ended, or needs something from the caller first."""
        return self.ended or self.state == "input_required" or self.held_up_by is not None

    def read_context_paths(self) -> list[str]:
        """Return the directories and files that it was given; none where its request cannot be read."""
        with suppress(MassgenError, OSError):
            return [one.path for one in self.directory.read_request().config.orchestrator.context_paths]
        return []

    @property
    def max_usd(self) -> float | None:
        """The cap as it stands, also of a run that nobody has begun; None where the run has none, or cannot be read."""
        if self.snapshot.started_at is not None:
            return self.snapshot.max_usd
        with suppress(MassgenError):
            return self.directory.read_request().config.budget.max_usd
        return None

    @property
    def elapsed(self) -> float:
        return self.snapshot.elapsed(self.snapshot.now(time.monotonic(), time.time()))


def _find_loss(row: RunRow, snapshot: RunState, directory: RunFiles) -> MassgenError | None:
    """Return what became of events that the store knows of and the journal lacks."""
    if row.events is None or snapshot.seq >= row.events:
        return None
    if not directory.path.exists():
        message = f"its directory is missing; remove the run with `massgen prune {row.run_id}` ({directory.path})"
        return MassgenError("run_damaged", message)
    return MassgenError("run_damaged", f"the run's journal ends after event {snapshot.seq}")


class RunWatch:
    """Looks at one run again and again, reading only what is new in its journal. From any thread."""

    def __init__(self, engine: Engine, run_id: str, held_up: Callable[[RunRow], str | None]) -> None:
        try:
            self._run_id = safe_id(run_id, "run id")
        except MassgenError:
            raise unknown_run(run_id) from None
        self._engine = engine
        self._store, self._files, self._liveness = engine.store, engine.files, engine.liveness
        self._held_up = held_up
        self._reader: EventReader | None = None
        self._folded = RunState()
        self._shown = RunState()
        """What was folded at the last look: whoever was given it reads it while more is folded in."""
        self.over = False
        """Whether nothing more is to be read here: the run has ended, or its record is damaged."""
        self._looking = Lock()

    def row(self) -> RunRow:
        """As the store knows it, once it knows whether somebody works on it."""
        row = self._store.index.get(self._run_id)
        if row.state == "running" and self._is_lost(row):
            row = self._store.index.get(self._run_id)
        return row

    def look(self) -> RunView:
        with self._looking:
            return self._look()

    def _look(self) -> RunView:
        row = self.row()
        directory = self._files.of(row)
        if row.expired:
            raise expired_run(row)
        reader = self._reader = self._reader or directory.event_log.follow(text=False)
        self._read(reader)
        snapshot = copy(self._shown)
        newer = self._newer(row, reader, directory)
        if snapshot.state in TERMINAL_STATES:
            if row.state == "interrupted" and (newer or self._held_up(row)):
                self._store.leases.end(self._run_id, snapshot)  # nobody comes to write the last of its files
        elif row.state != "running" or snapshot.state == "queued":
            snapshot.store_state = row.state  # a running run knows better itself what it does
            if row.state in TERMINAL_STATES:
                snapshot.lose_calls()  # cancelled when nobody worked on it: no event says so
                self._end_nested(snapshot)
        if snapshot.input_required and self._is_answered(row, snapshot):
            snapshot.store_state = row.state
            snapshot.caller = replace(snapshot.caller, asked=None)  # decided, and about to be heard
        held_up_by = None
        if snapshot.state == "interrupted" or (self._engine.pool is not None and snapshot.state == "queued"):
            held_up_by = str(newer) if newer else self._held_up(row)
        damage = reader.damage or _find_loss(row, snapshot, directory)
        if row.state in TERMINAL_STATES:
            self._files.fetch(row)
        self.over = damage is not None or self._folded.end is not None or row.state in TERMINAL_STATES
        snapshot.run_id, snapshot.question = row.run_id, snapshot.question or row.question
        snapshot.moved = row.moved
        ahead = self._store.index.count_ahead(row) if row.state == "queued" else 0
        return RunView(row, snapshot, directory, held_up_by, damage, ahead, newer=newer)

    def _is_answered(self, row: RunRow, snapshot: RunState) -> bool:
        """Tell whether an open control answers the caller's open question."""
        caller = snapshot.caller
        for control in self._store.controls.list_open([row.run_id]):
            match control.action:
                case "cancel" | "finish_now" | "move":
                    return True
                case "raise_budget" if not caller.carried_out(control.number):
                    return True
                case "answer" if CallerAnswer.read(control.message).question in (None, caller.questions):
                    return True
                case _:
                    pass
        return False

    def _end_nested(self, snapshot: RunState) -> None:
        """What the runs cost that were cancelled with this one; of one that cannot be read any more nobody knows."""
        for started in snapshot.open_nested_runs:
            with suppress(MassgenError):
                nested = RunWatch(self._engine, started.run_id, self._held_up).look().snapshot
                if (ended := nested.as_nested()) is not None:
                    snapshot.end_nested(ended)

    def _newer(self, row: RunRow, reader: EventReader, directory: RunFiles) -> JournalNewer | None:
        if reader.newer is None and row.state == "interrupted":
            try:
                directory.read_request()
            except JournalNewer as newer:
                return newer
        return reader.newer

    def _is_lost(self, row: RunRow) -> bool:
        """Whether the process that worked on a running run is gone; the store knows it then, too."""
        if row.foreground:
            if self._liveness.foreground_alive(self._files.of(row)):
                return False
            self._store.leases.mark_lost(row.run_id)
            return True
        if self._engine.pool is not None or self._liveness.runner_alive(row.fingerprint):
            return False  # workers find what others have lost
        self._store.leases.interrupt(row.fingerprint, of_runner=row.runner)
        return True

    def _read(self, reader: EventReader) -> None:
        """Fold in what is new; a damaged record is folded as far as it is whole."""
        seen = self._folded.seq
        for record in reader.read_intact():
            try:
                self._folded.apply(record)
            except LookupError:
                if reader.newer is None:
                    raise  # otherwise it is about something that an unread event brought in
        if self._folded.seq > seen:
            self._shown = deepcopy(self._folded)


class KeptWatches:
    """The watches of runs that go on, so that a look reads only what is new; at most `most`. From any thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._watches: OrderedDict[tuple[str | None, str], RunWatch] = OrderedDict()
        self._changing = Lock()

    def get(self, key: tuple[str | None, str], make: Callable[[], RunWatch]) -> RunWatch:
        """Return the watch of a user and a run. Raises as `make`."""
        with self._changing:
            watch = self._watches.pop(key, None)
            if watch is None or watch.over:
                watch = make()  # read anew: its files may be mended, moved or deleted
            self._watches[key] = watch
            while len(self._watches) > self._most:
                self._watches.popitem(last=False)
        return watch


async def looks(
    view: RunView, look: Callable[[str], Awaitable[RunView]], liveness: Liveness, *, milestones: bool = False
) -> AsyncGenerator[RunView]:
    """The run as `look` finds it now, and again whenever there is something new: with `milestones` only when its state
    or phase may have changed. Costs nothing in between, as long as whoever executes the run tells news.
    """
    pause, longest = LOOK_SECONDS
    while True:
        where = (view.row.foreground, view.row.fingerprint)
        changed = False
        with liveness.following(view.row, view.directory, milestones=milestones) as follower:
            while follower is not None and where == (view.row.foreground, view.row.fingerprint):
                changed = True
                with anyio.move_on_after(SAFETY_SECONDS):
                    changed = await follower.changed()
                view = await look(view.row.run_id)
                yield view
                if not changed:
                    break
                pause = LOOK_SECONDS[0]
        if not changed:
            await anyio.sleep(pause)
            pause = min(longest, 2 * pause)
            view = await look(view.row.run_id)
            yield view
