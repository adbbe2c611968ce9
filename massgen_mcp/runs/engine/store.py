"""The index of all runs: what a start, a runner, a look and a pruning ask of it."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from massgen_mcp.request.build import OnConflict
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import RunStatus
from massgen_mcp.runs.engine.rows import (
    Added,
    AuditEntry,
    Control,
    EndedRow,
    Kept,
    LostRun,
    NewRun,
    RunRow,
    StateFigures,
    Wish,
    WorkRow,
)
from massgen_mcp.statistics.digest import Mark, RunDigest


class RunStore(Protocol):
    """The rows of all runs: state, credentials, open controls, and the order of the queue.

    A row's state is an index over the run's event log. Every write is durable before the call returns, and safe among
    many processes. Methods may be called from any thread. All raise `MassgenError` disk_full or store_unavailable.

    While a person asks (`people.asking`) there are no runs but his own for whatever looks runs up.
    """

    def close(self) -> None: ...

    def add(self, run: NewRun, *, on_conflict: OnConflict = "use_existing", max_queued: int | None = None) -> Added:
        """Queue a run, unless its idempotency key is taken.

        A taken key: `use_existing` gives the run of that key if it is the same request; `cancel_existing` cancels that
        run, whatever it was, and gives the key to the new one. Raises `MassgenError` idempotency_conflict otherwise,
        session_busy while another turn of the session goes on (one that was interrupted in the foreground does not),
        queue_full; `SessionMoved`. A nested run needs no room in the queue.
        """
        ...

    def admit(self, run_id: str) -> None:
        """Let a nested run begin that was not admitted when it was added."""

    def add_foreground(self, run: NewRun, directory: Path) -> None:
        """Note a run that the calling process executes itself, in a directory of its own choice. Raises `MassgenError`
        session_busy; `SessionMoved`.
        """

    def take_foreground(self, run_id: str, fingerprint: str) -> bool:
        """Let the calling process continue an interrupted run itself; False if somebody was faster. Raises
        `MassgenError` session_busy.
        """
        ...

    def unfinished_below(self, directory: Path) -> list[RunRow]:
        """Foreground runs below this directory that have not ended and that this version may execute, newest first."""
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
        state: RunStatus | None = None,
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

    def claim(
        self,
        fingerprint: str,
        runner: str,
        *,
        max_running: int,
        absent: Collection[str] = (),
        among: Collection[str] | None = None,
        held_back: Mapping[str, str] | None = None,
    ) -> list[RunRow]:
        """Take the queued or interrupted runs whose turn it is (see `fair_queue`) and that this runner's credentials
        fit, oldest first. `runner`: its id.

        At most `max_running` runs are running then, of all runners together, besides nested ones, which work in the
        place of the run that they are nested in and are all taken. Nothing is held free for the fingerprints
        in `absent`, which have no runner. `among`: ids of the only runs that may be taken; None: any. `held_back`: by
        id, what else those wait for that their runner leaves in the queue, in words (`RunRow.held_back_by`); no place
        is held free for them either.
        """
        ...

    def queue(self, fingerprint: str) -> list[WorkRow]:
        """The runs that a runner with these credentials could take, oldest first."""
        ...

    def at_work(self) -> list[tuple[str, RunStatus, str | None]]:
        """Fingerprint, state and runner of everything that waits for a runner or has one, without repetition."""
        ...

    def end(self, run_id: str, end: RunState) -> None:
        """Index how a run ended, so that lists need no journal, and a journal that was cut off later is noticed. Runs
        nested in it that go on are to be cancelled then.
        """

    def ended(
        self,
        *,
        since: float | None = None,
        config: str | None = None,
        run_ids: Collection[str] | None = None,
        newest: int | None = None,
    ) -> list[EndedRow]:
        """Runs that have ended and that are not nested in others, oldest first, expired ones included. `since`: started
        then or later; `config`: with a team from there; `run_ids`: these runs alone, nested or not; `newest`: so many
        of them at most, the last ones.
        """
        ...

    def keep_digests(self, digests: Mapping[int, RunDigest | None]) -> None:
        """What was read of the records of ended runs, by number; None: nothing is left of it. `end` does it, too."""

    def mark(self, run_id: str, agent: str, mark: Mark | None) -> None:
        """What the user says of an agent, by its id, or, with an empty one, of the run's answer; None: nothing more. It
        outlives the run's results, without its note.
        """

    def interrupt(self, fingerprint: str, *, of_runner: str | None = None) -> list[str]:
        """Mark the running runs of lost runners, or of this one that was lost. Returns their ids."""
        ...

    def lose(self, run_id: str) -> None:
        """Mark a run as interrupted whose foreground process is gone."""

    def pause(self, run_id: str, runner: str) -> None:
        """Let a run of this runner wait for one again, as if its own had been lost."""

    def set_aside(self, run_id: str) -> None:
        """Let a run that has not ended lie until a version looks that writes newer journals than this one."""

    def controls(self, run_ids: list[str]) -> list[Control]:
        """The open controls of these runs, oldest first. One stays open until it is `done`, or the run ends; `move`, as
        long as the run is moved.
        """
        ...

    def done(self, numbers: list[int]) -> None:
        """These controls are part of their runs' journals now."""

    def want(self, run_id: str, action: Wish, message: str = "") -> RunRow:
        """Ask for something to be done with a run; one that nobody works on is cancelled right here, and what is nested
        in it. Returns the row after that. Raises `MassgenError` invalid_action for one that was moved, as `adopt`.
        """
        ...

    def move_out(self, run_id: str, where: str) -> None:
        """Let a run that has not ended, and what is nested in it, go on in another store, and here no more: whoever
        executes it leaves it. `where`: in words. Raises `MassgenError` invalid_action for one that a process executes
        that is no runner.
        """

    def family(self, run_id: str) -> list[RunRow]:
        """The run, and all that are nested in it, outer ones first."""
        ...

    def adopt(self, run_id: str, fingerprint: str) -> None:
        """Let runners with these credentials take an interrupted run, whoever started it and with which ones. Raises
        `MassgenError` session_busy.
        """

    def start_ageing(self, age: float) -> None:
        """Runs that have ended age from the first time that this is called after their end; `age` is the clock's."""

    def old(self, aged_from: float, kept: Collection[Kept], *, interrupted: bool) -> list[RunRow]:
        """Runs that have ended at that age or before and of which so much is kept, oldest first. Runs in directories of
        their own lie in their user's projects: they never become too old.
        """
        ...

    def keep(self, row: RunRow, kept: Kept) -> bool:
        """Change what is kept of a run. False, and no change, if it goes on again or another process has changed it.

        The idempotency key of an expired run is free again.
        """
        ...

    def clock(self) -> tuple[float, float, str, float] | None:
        """The retention clock as it was left: its age, and wall clock, boot and uptime when it had that age."""
        ...

    def set_clock(self, age: float, wall: float, boot: str, uptime: float) -> None: ...

    def restore(self, lost: Sequence[LostRun]) -> list[str]:
        """Enter those of these runs that have no row, or were moved, or have expired, in this order. Returns their ids.
        A key that another run has is that run's; of two of these the later one has it. They are kept as if they had
        ended now.
        """
        ...

    def put_away_broken(self) -> Path | None:
        """Move a store away that is damaged; returns where it is then. None, and nothing is done, for one that is
        whole, missing, locked or of a newer version.
        """
        ...

    def note(self, run_id: str, action: str) -> None:
        """Remember for good that whoever asks has done this to a run, if he is a person or the run is a person's.
        What the other methods here do is noted by them.
        """

    def audit(self, *, person: str | None, run_id: str | None, limit: int) -> list[AuditEntry]:
        """What was done, newest first, by this person and to this run; None: by any, to any."""
        ...

    def figures(self) -> list[StateFigures]:
        """How many runs there are in each state in which there is one."""
        ...

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
