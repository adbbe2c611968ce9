"""What a run needs of the machine that keeps it: a store of runs, event logs, files, and who is alive.

Whoever starts, executes, watches or prunes runs is handed an `Engine` and asks only what is here. The one that exists
is `local`: SQLite, files and locks of one machine. `tests/engine` is what every other one has to pass.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from massgen_mcp.config.models import Config, EarlierTurn
from massgen_mcp.errors import JournalNewer, MassgenError
from massgen_mcp.events import EventT, LogRecord
from massgen_mcp.home import Home
from massgen_mcp.redaction import NO_KEYS, Redactor
from massgen_mcp.runs.rows import Action, Added, Control, Kept, NewRun, OnConflict, Request, RunRow, WorkRow
from massgen_mcp.views.snapshot import RunSnapshot, RunState

Part = Literal["workspaces", "results"]
"""Of a run's files. `workspaces`: the agents' own, and the snapshots of their answers; `results`: everything."""


class RunStore(Protocol):
    """Which runs exist, whose they are, what is wanted of them, who is next.

    A row's state is an index over the run's event log. Every write is durable before the call returns, and safe among
    many processes. Methods may be called from any thread. All raise `MassgenError` disk_full or store_unavailable.
    """

    def close(self) -> None: ...

    def add(self, run: NewRun, *, on_conflict: OnConflict = "use_existing", max_queued: int | None = None) -> Added:
        """Queue a run, unless its idempotency key is taken.

        A taken key: `use_existing` gives the run of that key if it is the same request; `cancel_existing` cancels that
        run, whatever it was, and gives the key to the new one. Raises `MassgenError` idempotency_conflict otherwise,
        session_busy while another turn of the session goes on, queue_full; `SessionMoved`.
        """
        ...

    def add_foreground(self, run: NewRun, directory: Path) -> None:
        """Note a run that the calling process executes itself, in a directory of its own choice."""
        ...

    def take_foreground(self, run_id: str, fingerprint: str) -> bool:
        """Let the calling process continue an interrupted run itself; False if somebody was faster."""
        ...

    def reusable(self, run: NewRun, on_conflict: OnConflict) -> Added | None:
        """What `add` would give for a taken key, without adding anything; None if it would add the run.

        Raises `MassgenError` idempotency_conflict.
        """
        ...

    def get(self, run_id: str) -> RunRow:
        """Raises `MassgenError` unknown_run."""
        ...

    def recent(
        self,
        *,
        state: RunState | None = None,
        session_id: str | None = None,
        since: float | None = None,
        before: int | None = None,
        limit: int,
    ) -> list[RunRow]:
        """Newest first. `since`: started then or later; `before`: the `number` of the last row already seen."""
        ...

    def ahead(self, row: RunRow) -> int:
        """How many runs that came before this one wait for a runner, too."""
        ...

    def known(self, run_ids: Collection[str]) -> set[str]:
        """Those of these ids that are runs, expired ones included."""
        ...

    def beginning_with(self, prefix: str, limit: int) -> list[str]:
        """Ids of at most `limit` runs that begin so."""
        ...

    def claim(self, fingerprint: str, runner: str, *, max_running: int, absent: Collection[str] = ()) -> list[RunRow]:
        """Take the queued or interrupted runs whose turn it is (see `turns`) and that this runner's credentials fit,
        oldest first. `runner`: its id.

        At most `max_running` runs are running then, of all runners together. Nothing is held free for the fingerprints
        in `absent`, which have no runner.
        """
        ...

    def waiting(self, fingerprint: str) -> int:
        """How many runs a runner with these credentials could take."""
        ...

    def at_work(self) -> list[tuple[str, RunState, str | None]]:
        """Fingerprint, state and runner of everything that waits for a runner or has one, without repetition."""
        ...

    def end(self, run_id: str, end: RunSnapshot) -> None:
        """Index how a run ended, so that lists need no journal, and a journal that was cut off later is noticed."""
        ...

    def interrupt(self, fingerprint: str, *, of_runner: str | None = None) -> list[str]:
        """Mark the running runs of lost runners, or of this one that was lost. Returns their ids."""
        ...

    def lose(self, run_id: str) -> None:
        """Mark a run as interrupted whose foreground process is gone."""
        ...

    def pause(self, run_id: str, runner: str) -> None:
        """Let a run of this runner wait for one again, as if its own had been lost."""
        ...

    def set_aside(self, run_id: str) -> None:
        """Let a run that has not ended lie until a version looks that writes newer journals than this one."""
        ...

    def controls(self, run_ids: list[str]) -> list[Control]:
        """What is wanted of these runs, oldest first. It stays wanted until it is `done`, or the run ends."""
        ...

    def done(self, numbers: list[int]) -> None:
        """These controls are part of their runs' journals now."""
        ...

    def want(self, run_id: str, action: Action, message: str = "") -> RunRow:
        """Ask for something to be done with a run; one that nobody works on is cancelled right here. Returns the row
        after that.
        """
        ...

    def adopt(self, run_id: str, fingerprint: str) -> None:
        """Let runners with these credentials take an interrupted run, whoever started it and with which ones."""
        ...

    def start_ageing(self, age: float) -> None:
        """Runs that have ended age from the first time that this is called after their end; `age` is the clock's."""
        ...

    def old(self, aged_from: float, kept: Collection[Kept], *, interrupted: bool) -> list[RunRow]:
        """Runs that have ended at that age or before and of which so much is kept, oldest first. Runs in directories of
        their own lie in their user's projects: they never become too old.
        """
        ...

    def keep(self, row: RunRow, kept: Kept) -> bool:
        """Say what is kept of a run from now on; False if it goes on meanwhile, or somebody was faster.

        The idempotency key of an expired run is free again.
        """
        ...

    def clock(self) -> tuple[float, float, str, float] | None:
        """The retention clock as it was left: its age, and wall clock, boot and uptime when it had that age."""
        ...

    def set_clock(self, age: float, wall: float, boot: str, uptime: float) -> None: ...

    # The four below may be asked of a store that is damaged, locked or of another version. They change nothing, and
    # take part in no migration.

    def exists(self) -> bool:
        """Whether there is a store at all."""
        ...

    def described(self) -> str:
        """Which store this program would use, and which version of its schema."""
        ...

    def examine(self) -> str | None:
        """What is wrong with the store, and what to do; None if nothing."""
        ...

    def overview(self) -> list[WorkRow]:
        """Every run, as far as it tells who should work on it. None where there is no store."""
        ...


class DamagedJournal(MassgenError):
    """An event in the middle of a log is not what was written. `intact`: the new records before it."""

    def __init__(self, seq: int, intact: list[LogRecord]) -> None:
        super().__init__("run_damaged", f"the run's journal is damaged from event {seq} on")
        self.intact = intact


class EventWriter(Protocol):
    """Appends to the log, for the process that executes the run.

    `record` fixes an event's place at once and hands it to the listeners; it is durable after `settle`, and most likely
    soon anyway. No key passes: what is recorded and what the listeners hear holds none.
    """

    def listen(self, listener: Callable[[LogRecord], None]) -> None:
        """Call `listener` with every record from now on, in order, before anything else happens."""
        ...

    def record(self, event: EventT) -> EventT:
        """Returns the event as it is recorded: without keys."""
        ...

    async def settle(self) -> None:
        """Everything recorded before this call survives a power cut. Concurrent calls share one write.

        Raises `MassgenError` disk_full or store_unavailable; nothing is lost then, and the next call tries again.
        """
        ...

    async def drain(self) -> None:
        """Write what is pending, for readers in other processes."""
        ...

    def close(self) -> None:
        """What was not settled may be lost."""
        ...


class EventReader(Protocol):
    """Follows a log that others write; each `read` gives what is new since the last one."""

    @property
    def newer(self) -> JournalNewer | None:
        """Why nobody here may go on with the run, once a record of a newer version was read."""
        ...

    def read(self) -> list[LogRecord]:
        """New whole records. A log that is not there yet has none.

        Raises `DamagedJournal` (run_damaged), again at every call, or `MassgenError` store_unavailable.
        """
        ...


class EventLog(Protocol):
    """The events of one run: one writer, any number of readers in any process. `seq` counts from 1 without a gap.

    An event that was not wholly written never happened; one that was changed or is missing is damage; what a newer
    version wrote is neither.
    """

    def append(self, *, redactor: Redactor = NO_KEYS) -> EventWriter:
        """Goes on after the last whole event. Raises `OSError`."""
        ...

    def follow(self, after: int = 0) -> EventReader:
        """Gives the events whose `seq` is above `after`."""
        ...

    def read(self) -> list[LogRecord]:
        """Every record there is now. Raises as `EventReader.read` does."""
        ...

    def read_to_continue(self) -> list[LogRecord]:
        """Every record, for whoever continues or ends the run. Raises as `EventReader.read` does, and `JournalNewer`
        where a newer version wrote a part.
        """
        ...


class RunFiles(Protocol):
    """The files of one run, on the machine that executes it."""

    @property
    def path(self) -> Path:
        """The directory that holds all of them."""
        ...

    @property
    def log(self) -> Path:
        """What is told of the run, for people."""
        ...

    @property
    def event_log(self) -> EventLog: ...

    def read_request(self) -> Request:
        """The request as it was frozen. Raises `MassgenError` run_damaged, store_unavailable, and `JournalNewer`
        for one that is whole and holds what this version does not know.
        """
        ...

    def attempt_of(self, attempt: int) -> Path: ...

    def workspace_of(self, agent: str) -> Path: ...

    def private_of(self, agent: str) -> Path:
        """For an agent that is a program of its own: its home, while it works."""
        ...

    def final_of(self, agent: str) -> Path: ...

    def write_final(self, agent: str, answer: str) -> Path:
        """`final/<agent>/answer.txt`; returns its path."""
        ...

    def write_status(self, status: dict[str, Any]) -> None: ...

    def write_record(self, events: dict[str, Any], table: str) -> None:
        """`coordination_events.json` and `coordination_table.txt`."""
        ...

    def write_metadata(self, metadata: dict[str, Any]) -> None:
        """`execution_metadata.yaml`: what ran, for people who compare runs."""
        ...

    def probe(self) -> None:
        """Raises `OSError` if the run could not write now."""
        ...


class FileStore(Protocol):
    """The files of all runs."""

    def create(
        self, run_id: str, question: str, config: Config, history: Sequence[EarlierTurn], redactor: Redactor
    ) -> RunFiles:
        """Freeze the request of a new run, durably; `redactor` takes keys out before. Raises `MassgenError` disk_full
        or store_unavailable.
        """
        ...

    def created(self, run_id: str) -> bool:
        """Whether the request of a run that was to be created is there: it may be in spite of an error."""
        ...

    def discard(self, run_id: str) -> None:
        """Forget a run that was created here and is in no store. Raises `OSError`."""
        ...

    def of(self, row: RunRow | WorkRow) -> RunFiles: ...

    def making(self) -> AbstractContextManager[None]:
        """Held while a run's files are there and its row is not: what is found then without a row is no leftover."""
        ...

    def pruning(self) -> AbstractContextManager[None]:
        """Held while old files are deleted, by one process at a time. Raises `BlockingIOError` if that is another."""
        ...

    def free_reserve(self) -> bool:
        """Give up the room that is kept for pruning a full disk, until the next pruning; False if there is none."""
        ...

    def size(self, row: RunRow, part: Part) -> int:
        """In bytes."""
        ...

    def remove(self, row: RunRow, part: Part) -> None:
        """Safe to repeat. Raises `OSError`."""
        ...

    def remove_leftovers(self, known: Callable[[Collection[str]], set[str]], *, dry_run: bool) -> list[tuple[str, int]]:
        """Delete the files of starts that were never acknowledged: no row, nobody making them, and no event. Returns
        run ids and bytes. `known` says which of some runs have a row.
        """
        ...

    def with_events(self) -> list[str]:
        """Ids of the runs that have events, whether a store knows them or not."""
        ...


class Waking(Protocol):
    """What a runner hears while it listens."""

    async def woken(self) -> None:
        """Return as soon as somebody has woken the runner since the last call."""
        ...


class Liveness(Protocol):
    """Who works now, seen without delay: one that ends in whatever way is gone at once. Per fingerprint of credentials
    there is at most one runner.
    """

    def runner_alive(self, fingerprint: str) -> bool: ...

    def runners(self) -> set[str]:
        """Fingerprints that have or had a runner here."""
        ...

    def wake(self, fingerprint: str) -> bool:
        """Let the runner look at its queue; False if there is none that listens."""
        ...

    def summon(self, fingerprint: str, environ: Mapping[str, str]) -> None:
        """Make sure that a runner looks at the queue; a new one gets `environ`. The queued run must be stored already.

        Raises `MassgenError` store_unavailable.
        """
        ...

    def hold(self, fingerprint: str) -> AbstractContextManager[bool]:
        """Be the runner for as long as the context lasts. A predecessor that is just leaving is waited for; False if
        there is another one.
        """
        ...

    def listen(self, fingerprint: str) -> AbstractContextManager[Waking]:
        """Hear wakers for as long as the context lasts. Only for who holds; wakers are refused before and after."""
        ...

    def foreground_alive(self, run: RunFiles) -> bool:
        """Whether a process that is no runner executes the run."""
        ...

    def hold_foreground(self, run: RunFiles) -> AbstractContextManager[None]:
        """Execute the run in this process for as long as the context lasts. Raises `MassgenError` disk_full or
        store_unavailable.
        """
        ...


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts that keep the runs of one home."""

    home: Home
    store: RunStore
    files: FileStore
    liveness: Liveness

    def close(self) -> None:
        self.store.close()
