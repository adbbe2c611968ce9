"""Which runs exist, whose they are, what is wanted of them, who is next: one database per user.

What happened *in* a run is in its journal; a row's state is an index over that. Every write is durable before the call
returns, and safe among many processes. Must not know processes, journals, directories or models.

Places are counted over all processes, so a run that waits for another run's result must never hold one: a nested run,
when there are such, works in the place of the run that waits for it and is not queued.
"""

import json
import secrets
import sqlite3
import time
from base64 import b32encode
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from massgen_mcp.errors import MassgenError
from massgen_mcp.events import JOURNAL_VERSION, Outcome
from massgen_mcp.runs.database import Database
from massgen_mcp.runs.turns import Waiting, share_out
from massgen_mcp.views.snapshot import TERMINAL_STATES, RunSnapshot, RunState

Action = Literal["cancel", "finish_now", "steer", "answer", "raise_budget"]
"""What can be asked of a run that is queued or goes on."""
OnConflict = Literal["use_existing", "fail", "cancel_existing"]
"""What a start does when its idempotency key is taken."""
Kept = Literal["all", "losing_workspaces", "results", "losing_results", "nothing"]
"""What of a run's files there is. The two in between: being deleted, and to be finished by the next pruning."""

QUESTION_PREVIEW = 200
RUN_ID_PREFIX = "run-"

_COLUMNS = (
    "number, run_id, state, question, config, fingerprint, runner, idempotency_key, request_hash, created, started,"
    " ended, session_id, outcome, winner, events, kept,"
    " resumes, directory, foreground"
)
_ENDED = tuple(sorted(TERMINAL_STATES))
_OVER = (*_ENDED, "interrupted")
_WAITING = (
    f"state IN ('queued', 'interrupted') AND kept = 'all' AND foreground = 0 AND journal_version <= {JOURNAL_VERSION:d}"
)
"""What a runner could take."""
_RUNNING = "state = 'running' AND foreground = 0"
"""What runners work on."""
_BUSY = ("queued", "running", "interrupted")
"""States in which a run may still add to its session."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """`question` is cut to a preview; `config` says where the team came from; times are seconds since the epoch.

    `outcome`, `winner` and `events` (how many there are in its journal) are known once the run has ended. Of an
    expired run (`kept` is losing_results or nothing) question and config are empty. `resumes`: how often a runner has
    taken it over from one that was lost. `directory`: where the run is, absolute; None: below the home's `runs`.
    `foreground`: the process that asked executes it, and no runner takes it before somebody resumes it.
    """

    number: int
    run_id: str
    state: RunState
    question: str
    config: str
    fingerprint: str
    runner: str | None
    idempotency_key: str | None
    request_hash: str
    created: float
    started: float | None
    ended: float | None
    session_id: str | None
    outcome: Outcome | None
    winner: str | None
    events: int | None
    kept: Kept
    resumes: int
    directory: str | None
    foreground: bool

    @property
    def expired(self) -> bool:
        return self.kept in ("losing_results", "nothing")


@dataclass(frozen=True, slots=True)
class Control:
    """Something that is wanted of a run; `number` tells it from every other one."""

    number: int
    run_id: str
    action: Action
    message: str


@dataclass(frozen=True, slots=True)
class NewRun:
    """What a start asks the store to remember. `turns_over`: the numbers of the session's runs that have ended, as
    far as its history goes back; the store may not know of the last end yet.
    """

    run_id: str
    question: str
    config: str
    fingerprint: str
    request_hash: str
    idempotency_key: str | None = None
    session_id: str | None = None
    turns_over: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Added:
    """The run that a start led to. `reused`: it is an earlier one; `replaced`: the run that was cancelled for it."""

    row: RunRow
    reused: bool = False
    replaced: RunRow | None = None


class SessionMoved(Exception):
    """Another turn of the session has been added since its history was read."""


class Store:
    """Methods may be called from any thread. All raise `MassgenError` disk_full or store_unavailable."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path)

    def close(self) -> None:
        self._database.close()

    # -- starting -------------------------------------------------------------------------------------------------

    def add(self, run: NewRun, *, on_conflict: OnConflict = "use_existing", max_queued: int | None = None) -> Added:
        """Queue a run, unless its idempotency key is taken.

        A taken key: `use_existing` gives the run of that key if it is the same request; `cancel_existing` cancels that
        run, whatever it was, and gives the key to the new one. Raises `MassgenError` idempotency_conflict otherwise,
        session_busy while another turn of the session goes on, queue_full; `SessionMoved`.
        """
        with self._database.transaction() as db:
            earlier = _one(db, "idempotency_key = ?", run.idempotency_key) if run.idempotency_key is not None else None
            if earlier is not None and on_conflict != "cancel_existing":
                return Added(_reusable(earlier, run, on_conflict), reused=True)
            if earlier is not None:
                db.execute("UPDATE runs SET idempotency_key = NULL WHERE number = ?", (earlier.number,))
                earlier = self._want(db, earlier, "cancel")
            if run.session_id is not None:
                _check_session(db, run, leaving=earlier)
            _check_queue(db, max_queued)
            db.execute(
                "INSERT INTO runs (run_id, state, question, config, fingerprint, idempotency_key, request_hash,"
                " created, session_id) VALUES (?, 'queued', ?, ?, ?, ?, ?, ?, ?)",
                (
                    run.run_id,
                    run.question[:QUESTION_PREVIEW],
                    run.config,
                    run.fingerprint,
                    run.idempotency_key,
                    run.request_hash,
                    time.time(),
                    run.session_id,
                ),
            )
            return Added(_existing(db, run.run_id), replaced=earlier)

    def add_foreground(self, run: NewRun, directory: Path) -> None:
        """Note a run that the calling process executes itself, in a directory of its own choice."""
        with self._database.transaction() as db:
            now = time.time()
            db.execute(
                "INSERT INTO runs (run_id, state, question, config, fingerprint, request_hash, created, started,"
                " directory, foreground) VALUES (?, 'running', ?, ?, ?, ?, ?, ?, ?, 1)",
                (
                    run.run_id,
                    run.question[:QUESTION_PREVIEW],
                    run.config,
                    run.fingerprint,
                    run.request_hash,
                    now,
                    now,
                    str(directory),
                ),
            )

    def take_foreground(self, run_id: str, fingerprint: str) -> bool:
        """Let the calling process continue an interrupted run itself; False if somebody was faster."""
        with self._database.transaction() as db:
            found = db.execute(
                "UPDATE runs SET state = 'running', foreground = 1, fingerprint = ?, resumes = resumes + 1,"
                " ended = NULL, aged_from = NULL WHERE run_id = ? AND state = 'interrupted' AND kept = 'all'",
                (fingerprint, run_id),
            )
            return found.rowcount == 1

    def reusable(self, run: NewRun, on_conflict: OnConflict) -> Added | None:
        """What `add` would give for a taken key, without adding anything; None if it would add the run.

        Raises `MassgenError` idempotency_conflict.
        """
        if run.idempotency_key is None or on_conflict == "cancel_existing":
            return None
        with self._database.reading() as db:
            earlier = _one(db, "idempotency_key = ?", run.idempotency_key)
        return None if earlier is None else Added(_reusable(earlier, run, on_conflict), reused=True)

    # -- looking --------------------------------------------------------------------------------------------------

    def get(self, run_id: str) -> RunRow:
        """Raises `MassgenError` unknown_run."""
        with self._database.reading() as db:
            return _existing(db, run_id)

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
        with self._database.reading() as db:
            return _all(
                db,
                "(?1 IS NULL OR state = ?1) AND (?2 IS NULL OR session_id = ?2) AND (?3 IS NULL OR created >= ?3)"
                " AND (?4 IS NULL OR number < ?4) ORDER BY number DESC LIMIT ?5",
                state,
                session_id,
                since,
                before,
                limit,
            )

    def unfinished_below(self, directory: Path) -> list[RunRow]:
        """Foreground runs below this directory that have not ended and that this version may execute, newest first."""
        beginning = f"{directory}/"
        condition = (
            "foreground = 1 AND state IN ('running', 'interrupted') AND kept = 'all'"
            f" AND journal_version <= {JOURNAL_VERSION:d} AND substr(directory, 1, ?) = ? ORDER BY number DESC"
        )
        with self._database.reading() as db:
            return _all(db, condition, len(beginning), beginning)

    def at(self, directory: Path) -> RunRow | None:
        """The run that was given this directory of its own."""
        with self._database.reading() as db:
            return _one(db, "directory = ?", str(directory))

    def ahead(self, row: RunRow) -> int:
        """How many runs that came before this one wait for a runner, too."""
        with self._database.reading() as db:
            return _count(db, f"{_WAITING} AND number < ?", row.number)

    def known(self, run_ids: Collection[str]) -> set[str]:
        """Those of these ids that are runs, expired ones included."""
        with self._database.reading() as db:
            query = "SELECT run_id FROM runs WHERE run_id IN (SELECT value FROM json_each(?))"
            return {run_id for (run_id,) in db.execute(query, (json.dumps(list(run_ids)),))}

    def beginning_with(self, prefix: str, limit: int) -> list[str]:
        """Ids of at most `limit` runs that begin so."""
        with self._database.reading() as db:
            query = "SELECT run_id FROM runs WHERE substr(run_id, 1, ?) = ? LIMIT ?"
            return [run_id for (run_id,) in db.execute(query, (len(prefix), prefix, limit))]

    # -- what runners do ------------------------------------------------------------------------------------------

    def claim(self, fingerprint: str, runner: str, *, max_running: int, absent: Collection[str] = ()) -> list[RunRow]:
        """Take the queued or interrupted runs whose turn it is (see `turns`) and that this runner's credentials fit,
        oldest first. `runner`: its id.

        At most `max_running` runs are running then, of all runners together. Nothing is held free for the fingerprints
        in `absent`, which have no runner.
        """
        with self._database.transaction() as db:
            room = max_running - _count(db, _RUNNING)
            queues = [queue for queue in _queues(db) if queue.fingerprint not in absent]
            turns = share_out(room, queues).get(fingerprint, 0)
            if turns == 0:
                return []
            rows = db.execute(
                "UPDATE runs SET resumes = resumes + (state = 'interrupted'), state = 'running', runner = ?,"
                " started = ?, ended = NULL, aged_from = NULL"
                f" WHERE number IN (SELECT number FROM runs WHERE {_WAITING} AND fingerprint = ?"
                f" ORDER BY number LIMIT ?) RETURNING {_COLUMNS}",
                (runner, time.time(), fingerprint, turns),
            ).fetchall()
        return sorted((_row(row) for row in rows), key=lambda row: row.number)

    def waiting(self, fingerprint: str) -> int:
        """How many runs a runner with these credentials could take."""
        with self._database.reading() as db:
            return _count(db, f"{_WAITING} AND fingerprint = ?", fingerprint)

    def at_work(self) -> list[tuple[str, RunState, str | None]]:
        """Fingerprint, state and runner of everything that waits for a runner or has one, without repetition."""
        with self._database.reading() as db:
            query = f"SELECT DISTINCT fingerprint, state, runner FROM runs WHERE {_RUNNING} OR {_WAITING}"
            return db.execute(query).fetchall()

    def end(self, run_id: str, end: RunSnapshot) -> None:
        """Index how a run ended, so that lists need no journal, and a journal that was cut off later is noticed."""
        winner = end.winner.agent if end.winner else None
        with self._database.transaction() as db:
            db.execute(
                "UPDATE runs SET state = ?, outcome = ?, winner = ?, events = ?, ended = ? WHERE run_id = ?",
                (end.state, end.outcome, winner, end.seq, time.time(), run_id),
            )
            db.execute("DELETE FROM controls WHERE run_id = ?", (run_id,))

    def interrupt(self, fingerprint: str, *, of_runner: str | None = None) -> list[str]:
        """Mark the running runs of lost runners, or of this one that was lost. Returns their ids."""
        with self._database.transaction() as db:
            rows = db.execute(
                f"UPDATE runs SET state = 'interrupted', ended = ?1 WHERE {_RUNNING} AND fingerprint = ?2"
                " AND (?3 IS NULL OR runner = ?3) RETURNING run_id",
                (time.time(), fingerprint, of_runner),
            ).fetchall()
        return [row[0] for row in rows]

    def lose(self, run_id: str) -> None:
        """Mark a run as interrupted whose foreground process is gone."""
        with self._database.transaction() as db:
            db.execute(
                "UPDATE runs SET state = 'interrupted', ended = ? WHERE run_id = ? AND state = 'running'"
                " AND foreground = 1",
                (time.time(), run_id),
            )

    def pause(self, run_id: str, runner: str) -> None:
        """Let a run of this runner wait for one again, as if its own had been lost."""
        with self._database.transaction() as db:
            query = (
                "UPDATE runs SET state = 'interrupted', ended = ? WHERE run_id = ? AND state = 'running' AND runner = ?"
            )
            db.execute(query, (time.time(), run_id, runner))

    def set_aside(self, run_id: str) -> None:
        """Let a run that has not ended lie until a version looks that writes newer journals than this one."""
        with self._database.transaction() as db:
            query = (
                "UPDATE runs SET state = 'interrupted', ended = ?, journal_version = ? WHERE run_id = ?"
                f" AND {_among('state', _BUSY)}"
            )
            db.execute(query, (time.time(), JOURNAL_VERSION + 1, run_id, *_BUSY))

    def controls(self, run_ids: list[str]) -> list[Control]:
        """What is wanted of these runs, oldest first. It stays wanted until it is `done`, or the run ends."""
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT number, run_id, action, message FROM controls"
                " WHERE run_id IN (SELECT value FROM json_each(?)) ORDER BY number",
                (json.dumps(run_ids),),
            ).fetchall()
        return [Control(*row) for row in rows]

    def done(self, numbers: list[int]) -> None:
        """These controls are part of their runs' journals now."""
        with self._database.transaction() as db:
            db.execute("DELETE FROM controls WHERE number IN (SELECT value FROM json_each(?))", (json.dumps(numbers),))

    # -- what people want -----------------------------------------------------------------------------------------

    def want(self, run_id: str, action: Action, message: str = "") -> RunRow:
        """Ask for something to be done with a run; one that nobody works on is cancelled right here. Returns the row
        after that.
        """
        with self._database.transaction() as db:
            return self._want(db, _existing(db, run_id), action, message)

    @staticmethod
    def _want(db: sqlite3.Connection, row: RunRow, action: Action, message: str = "") -> RunRow:
        now = time.time()
        if row.state in ("queued", "interrupted") and action == "cancel":
            db.execute("UPDATE runs SET state = 'cancelled', ended = ? WHERE run_id = ?", (now, row.run_id))
        elif row.state in ("queued", "running", "interrupted"):
            db.execute(
                "INSERT INTO controls (run_id, action, message, created) VALUES (?, ?, ?, ?)",
                (row.run_id, action, message, now),
            )
        return _existing(db, row.run_id)

    def adopt(self, run_id: str, fingerprint: str) -> None:
        """Let runners with these credentials take an interrupted run, whoever started it and with which ones."""
        with self._database.transaction() as db:
            db.execute(
                "UPDATE runs SET fingerprint = ?, foreground = 0 WHERE run_id = ? AND state = 'interrupted'",
                (fingerprint, run_id),
            )

    # -- retention ------------------------------------------------------------------------------------------------

    def start_ageing(self, age: float) -> None:
        """Runs that have ended age from the first time that this is called after their end; `age` is the clock's."""
        with self._database.transaction() as db:
            db.execute(
                f"UPDATE runs SET aged_from = ? WHERE aged_from IS NULL AND {_among('state', _OVER)}", (age, *_OVER)
            )

    def old(self, aged_from: float, kept: Collection[Kept], *, interrupted: bool) -> list[RunRow]:
        """Runs that have ended at that age or before and of which so much is kept, oldest first. Runs in directories of
        their own lie in their user's projects: they never become too old.
        """
        states, kept = (_OVER if interrupted else _ENDED), tuple(kept)
        with self._database.reading() as db:
            condition = (
                f"aged_from <= ? AND {_among('state', states)} AND {_among('kept', kept)} AND directory IS NULL"
                " ORDER BY number"
            )
            return _all(db, condition, aged_from, *states, *kept)

    def keep(self, row: RunRow, kept: Kept) -> bool:
        """Say what is kept of a run from now on; False if it goes on meanwhile, or somebody was faster.

        The idempotency key of an expired run is free again.
        """
        with self._database.transaction() as db:
            found = db.execute(
                f"UPDATE runs SET kept = ? WHERE number = ? AND kept = ? AND {_among('state', _OVER)}",
                (kept, row.number, row.kept, *_OVER),
            )
            if kept == "losing_results":
                forget = (
                    "UPDATE runs SET question = '', config = '', idempotency_key = NULL WHERE number = ? AND kept = ?"
                )
                db.execute(forget, (row.number, kept))
            return found.rowcount == 1

    def clock(self) -> tuple[float, float, str, float] | None:
        """The retention clock as it was left: its age, and wall clock, boot and uptime when it had that age."""
        with self._database.reading() as db:
            return db.execute("SELECT age, wall, boot, uptime FROM retention_clock").fetchone()

    def set_clock(self, age: float, wall: float, boot: str, uptime: float) -> None:
        with self._database.transaction() as db:
            db.execute("INSERT OR REPLACE INTO retention_clock VALUES (1, ?, ?, ?, ?)", (age, wall, boot, uptime))


def new_run_id() -> str:
    """128 random bits: cannot be guessed, and fits every place where an id may stand."""
    return RUN_ID_PREFIX + b32encode(secrets.token_bytes(16)).decode().rstrip("=").lower()


def unknown_run(run_id: str) -> MassgenError:
    """The same words for a run that never was and for one that is not the caller's."""
    return MassgenError("unknown_run", f"there is no run {run_id[:80]!r}; list_runs shows the known ones")


# -- parts of a start -------------------------------------------------------------------------------------------------


def _reusable(earlier: RunRow, run: NewRun, on_conflict: OnConflict) -> RunRow:
    same = earlier.request_hash == run.request_hash
    if same and on_conflict == "use_existing":
        return earlier
    raise MassgenError(
        "idempotency_conflict",
        f"this idempotency_key was used for {'this' if same else 'another'} request, which is run {earlier.run_id}, "
        f"{earlier.state}; take another key, or on_conflict=cancel_existing",
    )


def _check_session(db: sqlite3.Connection, run: NewRun, *, leaving: RunRow | None) -> None:
    """One writer per session, and nobody's history lacks a turn. `leaving`: a turn that is being cancelled for this."""
    last = max(run.turns_over, default=0)
    condition = f"session_id = ? AND (number > ? OR {_among('state', _BUSY)}) ORDER BY number"
    for turn in _all(db, condition, run.session_id, last, *_BUSY):
        if turn.number in run.turns_over or (leaving is not None and turn.number == leaving.number):
            continue
        if turn.state in _BUSY:
            raise MassgenError(
                "session_busy",
                f"run {turn.run_id} of this session is {turn.state}; wait for its end with wait_run, or cancel it",
            )
        raise SessionMoved


def _check_queue(db: sqlite3.Connection, max_queued: int | None) -> None:
    if max_queued is not None and (queued := _count(db, "state = 'queued'")) >= max_queued:
        raise MassgenError(
            "queue_full", f"{queued} runs are waiting already, which is the limit; start it later, or cancel others"
        )


# -- plumbing ---------------------------------------------------------------------------------------------------------


def _queues(db: sqlite3.Connection) -> list[Waiting]:
    rows = db.execute(
        "SELECT fingerprint, count(*), min(number),"
        f" (SELECT count(*) FROM runs AS r WHERE {_RUNNING} AND r.fingerprint = q.fingerprint),"
        " (SELECT coalesce(max(started), 0) FROM runs AS r WHERE r.fingerprint = q.fingerprint)"
        f" FROM runs AS q WHERE {_WAITING} GROUP BY fingerprint"
    )
    return [Waiting(*row) for row in rows]


def _existing(db: sqlite3.Connection, run_id: str) -> RunRow:
    if (row := _one(db, "run_id = ?", run_id)) is None:
        raise unknown_run(run_id)
    return row


def _one(db: sqlite3.Connection, condition: str, *values: object) -> RunRow | None:
    row = db.execute(f"SELECT {_COLUMNS} FROM runs WHERE {condition}", values).fetchone()
    return None if row is None else _row(row)


def _all(db: sqlite3.Connection, condition: str, *values: object) -> list[RunRow]:
    return [_row(row) for row in db.execute(f"SELECT {_COLUMNS} FROM runs WHERE {condition}", values)]


def _count(db: sqlite3.Connection, condition: str, *values: object) -> int:
    return int(db.execute(f"SELECT count(*) FROM runs WHERE {condition}", values).fetchone()[0])


def _among(column: str, values: Collection[str]) -> str:
    return f"{column} IN ({', '.join('?' * len(values))})"


def _row(values: tuple[object, ...]) -> RunRow:
    return RunRow(*values)  # pyright: ignore[reportArgumentType] - the schema holds the types
