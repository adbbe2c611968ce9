"""The run store of one machine: one SQLite file per user.

Places are counted over all processes. A run that waits for another one would hold a place for nothing, and a full house
of such runs would wait for ever: a nested run works in the place of the run that it was started in, so it needs none.
"""

import json
import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.record import JOURNAL_VERSION
from massgen_mcp.request.run_request import OnConflict
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import TERMINAL_STATES, RunStatus
from massgen_mcp.runs.database import SCHEMA_VERSION, Database, examine
from massgen_mcp.runs.engine.rows import (
    Added,
    Control,
    EndedRow,
    Kept,
    NewRun,
    RunRow,
    SessionMoved,
    Wish,
    WorkRow,
    unknown_run,
)
from massgen_mcp.runs.fair_queue import QueueDepth, allocate
from massgen_mcp.statistics.digest import DIGEST_VERSION, RunDigest, digest_of
from massgen_mcp.statistics.marks import Mark

QUESTION_PREVIEW = 200

_COLUMNS = (
    "number, run_id, state, question, config, fingerprint, runner, idempotency_key, request_hash, created, started,"
    " ended, session_id, outcome, winner, events, kept,"
    " resumes, directory, foreground, held_back_by, parent, admitted"
)
_WORK_COLUMNS = "run_id, state, fingerprint, coalesce(started, created), kept, directory, foreground"
_ENDED = tuple(sorted(TERMINAL_STATES))
_OVER = (*_ENDED, "interrupted")
_WAITING = (
    "state IN ('queued', 'interrupted') AND kept = 'all' AND foreground = 0 AND admitted = 1"
    f" AND journal_version <= {JOURNAL_VERSION:d}"
)
"""What a runner could take."""
_NEEDS_A_PLACE = "parent IS NULL"
_RUNNING = "state = 'running' AND foreground = 0"
"""What runners work on."""
_BUSY = ("queued", "running", "interrupted")
"""States in which a run may still add to its session."""


class Store:
    """See `engine.RunStore`. The file is opened, and made, when it is first needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database = Database(path)

    def close(self) -> None:
        self._database.close()

    # -- starting -------------------------------------------------------------------------------------------------

    def add(self, run: NewRun, *, on_conflict: OnConflict = "use_existing", max_queued: int | None = None) -> Added:
        with self._database.transaction() as db:
            earlier = _one(db, "idempotency_key = ?", run.idempotency_key) if run.idempotency_key is not None else None
            if earlier is not None and on_conflict != "cancel_existing":
                return Added(_reusable(earlier, run, on_conflict), reused=True)
            if earlier is not None:
                db.execute("UPDATE runs SET idempotency_key = NULL WHERE number = ?", (earlier.number,))
                earlier = self._want(db, earlier, "cancel")
            if run.session_id is not None:
                _check_session(db, run, leaving=earlier)
            if run.parent is None:
                _check_queue(db, max_queued)
            _insert(db, run, state="queued", created=time.time())
            return Added(_existing(db, run.run_id), replaced=earlier)

    def add_foreground(self, run: NewRun, directory: Path) -> None:
        with self._database.transaction() as db:
            if run.session_id is not None:
                _check_session(db, run, leaving=None)
            now = time.time()
            _insert(db, run, state="running", created=now, started=now, directory=str(directory), foreground=1)

    def take_foreground(self, run_id: str, fingerprint: str) -> bool:
        with self._database.transaction() as db:
            _check_alone(db, run_id)
            found = db.execute(
                "UPDATE runs SET state = 'running', foreground = 1, fingerprint = ?, resumes = resumes + 1,"
                " ended = NULL, aged_from = NULL WHERE run_id = ? AND state = 'interrupted' AND kept = 'all'",
                (fingerprint, run_id),
            )
            return found.rowcount == 1

    def reusable(self, run: NewRun, on_conflict: OnConflict) -> Added | None:
        if run.idempotency_key is None or on_conflict == "cancel_existing":
            return None
        with self._database.reading() as db:
            earlier = _one(db, "idempotency_key = ?", run.idempotency_key)
        return None if earlier is None else Added(_reusable(earlier, run, on_conflict), reused=True)

    # -- looking --------------------------------------------------------------------------------------------------

    def get(self, run_id: str) -> RunRow:
        with self._database.reading() as db:
            return _existing(db, run_id)

    def recent(
        self,
        *,
        state: RunStatus | None = None,
        session_id: str | None = None,
        since: float | None = None,
        before: int | None = None,
        limit: int,
    ) -> list[RunRow]:
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
        beginning = f"{directory}/"
        condition = (
            "foreground = 1 AND state IN ('running', 'interrupted') AND kept = 'all'"
            f" AND journal_version <= {JOURNAL_VERSION:d} AND substr(directory, 1, ?) = ? ORDER BY number DESC"
        )
        with self._database.reading() as db:
            return _all(db, condition, len(beginning), beginning)

    def ahead(self, row: RunRow) -> int:
        with self._database.reading() as db:
            others = "1" if row.held_back_by else "held_back_by IS NULL"
            if row.parent is not None:
                return 0
            return _count(db, f"{_WAITING} AND {_NEEDS_A_PLACE} AND {others} AND number < ?", row.number)

    def known(self, run_ids: Collection[str]) -> set[str]:
        with self._database.reading() as db:
            query = "SELECT run_id FROM runs WHERE run_id IN (SELECT value FROM json_each(?))"
            return {run_id for (run_id,) in db.execute(query, (json.dumps(list(run_ids)),))}

    def beginning_with(self, prefix: str, limit: int) -> list[str]:
        with self._database.reading() as db:
            query = "SELECT run_id FROM runs WHERE substr(run_id, 1, ?) = ? LIMIT ?"
            return [run_id for (run_id,) in db.execute(query, (len(prefix), prefix, limit))]

    # -- what runners do ------------------------------------------------------------------------------------------

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
        only = None if among is None else json.dumps(list(among))
        # What a power cut takes back is claimed again, and goes on from its journal.
        with self._database.hasty_transaction() as db:
            _note_held_back(db, fingerprint, held_back or {})
            room = max_running - _count(db, f"{_RUNNING} AND {_NEEDS_A_PLACE}")
            queues = [queue for queue in _queues(db, fingerprint, only) if queue.fingerprint not in absent]
            turns = allocate(room, queues).get(fingerprint, 0)
            taken = (runner, time.time(), fingerprint, only)
            rows = _take(db, f"NOT ({_NEEDS_A_PLACE})", *taken, -1)
            if turns:
                rows += _take(db, _NEEDS_A_PLACE, *taken, turns)
        return sorted(rows, key=lambda row: row.number)

    def queue(self, fingerprint: str) -> list[WorkRow]:
        order = f"({_NEEDS_A_PLACE}), number"
        query = f"SELECT {_WORK_COLUMNS} FROM runs WHERE {_WAITING} AND fingerprint = ? ORDER BY {order}"
        with self._database.reading() as db:
            return [WorkRow(*values) for values in db.execute(query, (fingerprint,))]

    def at_work(self) -> list[tuple[str, RunStatus, str | None]]:
        with self._database.reading() as db:
            query = f"SELECT DISTINCT fingerprint, state, runner FROM runs WHERE {_RUNNING} OR {_WAITING}"
            return db.execute(query).fetchall()

    def end(self, run_id: str, end: RunState) -> None:
        winner = end.winner.agent if end.winner else None
        winner = end.agents[winner].info.id if winner in end.agents else winner
        with self._database.transaction() as db:
            db.execute(
                "UPDATE runs SET state = ?, outcome = ?, winner = ?, events = ?, ended = ? WHERE run_id = ?",
                (end.state, end.outcome, winner, end.seq, time.time(), run_id),
            )
            db.execute("DELETE FROM controls WHERE run_id = ?", (run_id,))
            self._cancel_nested(db, run_id)
            _keep_digests(db, {_existing(db, run_id).number: digest_of(end)})

    def ended(
        self, *, since: float | None = None, config: str | None = None, run_id: str | None = None
    ) -> list[EndedRow]:
        digest = f"(SELECT digest FROM digests WHERE number = runs.number AND version = {DIGEST_VERSION:d})"
        query = (
            f"SELECT {_COLUMNS}, {digest} FROM runs WHERE {_among('state', _ENDED)}"
            " AND CASE WHEN ? IS NULL THEN parent IS NULL ELSE run_id = ? END"
            " AND (? IS NULL OR created >= ?) AND (? IS NULL OR config = ?) ORDER BY number"
        )
        with self._database.reading() as db:
            rows = db.execute(query, (*_ENDED, run_id, run_id, since, since, config, config)).fetchall()
            marks: dict[int, dict[str, Mark]] = {}
            for number, agent, verdict, note, at in db.execute("SELECT number, agent, verdict, note, at FROM marks"):
                marks.setdefault(number, {})[agent] = Mark(verdict=verdict, note=note, at=at)
        return [
            EndedRow(
                row := _row(values),
                told is not None,
                None if told in (None, "") else RunDigest.model_validate_json(told),
                marks.get(row.number, {}),
            )
            for *values, told in rows
        ]

    def keep_digests(self, digests: Mapping[int, RunDigest | None]) -> None:
        with self._database.transaction() as db:
            _keep_digests(db, digests)

    def mark(self, run_id: str, agent: str, mark: Mark | None) -> None:
        with self._database.transaction() as db:
            number = _existing(db, run_id).number
            db.execute("DELETE FROM marks WHERE number = ? AND agent = ?", (number, agent))
            if mark is not None:
                values = (number, agent, mark.verdict, mark.note, mark.at)
                db.execute("INSERT INTO marks (number, agent, verdict, note, at) VALUES (?, ?, ?, ?, ?)", values)

    def admit(self, run_id: str) -> None:
        with self._database.transaction() as db:
            db.execute("UPDATE runs SET admitted = 1 WHERE run_id = ?", (run_id,))

    def interrupt(self, fingerprint: str, *, of_runner: str | None = None) -> list[str]:
        with self._database.transaction() as db:
            return _interrupt(
                db, f"{_RUNNING} AND fingerprint = ?2 AND (?3 IS NULL OR runner = ?3)", fingerprint, of_runner
            )

    def lose(self, run_id: str) -> None:
        with self._database.transaction() as db:
            _interrupt(db, "state = 'running' AND foreground = 1 AND run_id = ?2", run_id)

    def pause(self, run_id: str, runner: str) -> None:
        with self._database.transaction() as db:
            _interrupt(db, "state = 'running' AND run_id = ?2 AND runner = ?3", run_id, runner)

    def set_aside(self, run_id: str) -> None:
        with self._database.transaction() as db:
            query = (
                "UPDATE runs SET state = 'interrupted', ended = ?, journal_version = ? WHERE run_id = ?"
                f" AND {_among('state', _BUSY)}"
            )
            db.execute(query, (time.time(), JOURNAL_VERSION + 1, run_id, *_BUSY))

    def controls(self, run_ids: list[str]) -> list[Control]:
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT number, run_id, action, message FROM controls"
                " WHERE run_id IN (SELECT value FROM json_each(?)) ORDER BY number",
                (json.dumps(run_ids),),
            ).fetchall()
        return [Control(*row) for row in rows]

    def done(self, numbers: list[int]) -> None:
        with self._database.transaction() as db:
            db.execute("DELETE FROM controls WHERE number IN (SELECT value FROM json_each(?))", (json.dumps(numbers),))

    # -- what people want -----------------------------------------------------------------------------------------

    def want(self, run_id: str, action: Wish, message: str = "") -> RunRow:
        with self._database.transaction() as db:
            return self._want(db, _existing(db, run_id), action, message)

    def _want(self, db: sqlite3.Connection, row: RunRow, action: Wish, message: str = "") -> RunRow:
        now = time.time()
        if row.state in ("queued", "interrupted") and action == "cancel":
            db.execute("UPDATE runs SET state = 'cancelled', ended = ? WHERE run_id = ?", (now, row.run_id))
            self._cancel_nested(db, row.run_id)
        elif row.state in ("queued", "running", "interrupted"):
            db.execute(
                "INSERT INTO controls (run_id, action, message, created) VALUES (?, ?, ?, ?)",
                (row.run_id, action, message, now),
            )
        return _existing(db, row.run_id)

    def _cancel_nested(self, db: sqlite3.Connection, run_id: str) -> None:
        """Nobody reads any more what the runs nested in this one come to."""
        for row in _all(db, f"parent = ? AND {_among('state', _BUSY)}", run_id, *_BUSY):
            self._want(db, row, "cancel")

    def adopt(self, run_id: str, fingerprint: str) -> None:
        with self._database.transaction() as db:
            _check_alone(db, run_id)
            db.execute(
                "UPDATE runs SET fingerprint = ?, foreground = 0, held_back_by = NULL"
                " WHERE run_id = ? AND state = 'interrupted'",
                (fingerprint, run_id),
            )

    # -- retention ------------------------------------------------------------------------------------------------

    def start_ageing(self, age: float) -> None:
        with self._database.transaction() as db:
            db.execute(
                f"UPDATE runs SET aged_from = ? WHERE aged_from IS NULL AND {_among('state', _OVER)}", (age, *_OVER)
            )

    def old(self, aged_from: float, kept: Collection[Kept], *, interrupted: bool) -> list[RunRow]:
        states, kept = (_OVER if interrupted else _ENDED), tuple(kept)
        with self._database.reading() as db:
            condition = (
                f"aged_from <= ? AND {_among('state', states)} AND {_among('kept', kept)} AND directory IS NULL"
                " ORDER BY number"
            )
            return _all(db, condition, aged_from, *states, *kept)

    def keep(self, row: RunRow, kept: Kept) -> bool:
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
                db.execute("UPDATE marks SET note = '' WHERE number = ?", (row.number,))
            return found.rowcount == 1

    def clock(self) -> tuple[float, float, str, float] | None:
        with self._database.reading() as db:
            return db.execute("SELECT age, wall, boot, uptime FROM retention_clock").fetchone()

    def set_clock(self, age: float, wall: float, boot: str, uptime: float) -> None:
        with self._database.transaction() as db:
            db.execute("INSERT OR REPLACE INTO retention_clock VALUES (1, ?, ?, ?, ?)", (age, wall, boot, uptime))

    # -- for the doctor -------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        return self._path.exists()

    def described(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}, store schema {SCHEMA_VERSION}"

    def examine(self) -> str | None:
        return examine(self._path)

    def overview(self) -> list[WorkRow]:
        if not self.exists():
            return []
        query = f"SELECT {_WORK_COLUMNS} FROM runs"
        try:
            with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True, timeout=10)) as db:
                return [WorkRow(*values) for values in db.execute(query)]
        except sqlite3.Error as error:
            raise MassgenError("store_unavailable", str(error)) from error


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
        if turn.busy:
            raise _session_busy(turn)
        if turn.state in _ENDED:
            raise SessionMoved


def _check_alone(db: sqlite3.Connection, run_id: str) -> None:
    """Whether this run, which was interrupted, may go on as far as the other turns of its session are concerned."""
    condition = (
        f"session_id = (SELECT session_id FROM runs WHERE run_id = ?1) AND run_id <> ?1 AND {_among('state', _BUSY)}"
    )
    for turn in _all(db, condition, run_id, *_BUSY):
        if turn.busy:
            raise _session_busy(turn)


def _session_busy(turn: RunRow) -> MassgenError:
    return MassgenError(
        "session_busy",
        f"run {turn.run_id} of this session is {turn.state}; wait for its end with wait_run, or cancel it",
    )


def _check_queue(db: sqlite3.Connection, max_queued: int | None) -> None:
    if max_queued is not None and (queued := _count(db, "state = 'queued'")) >= max_queued:
        raise MassgenError(
            "queue_full", f"{queued} runs are waiting already, which is the limit; start it later, or cancel others"
        )


# -- plumbing ---------------------------------------------------------------------------------------------------------


def _take(
    db: sqlite3.Connection, condition: str, runner: str, now: float, fingerprint: str, among: str | None, most: int
) -> list[RunRow]:
    """Let a runner have the oldest of these runs that wait, at most so many; below 0: all. `among` as in `_queues`."""
    rows = db.execute(
        "UPDATE runs SET resumes = resumes + (state = 'interrupted'), state = 'running', runner = ?1,"
        " started = ?2, ended = NULL, aged_from = NULL, held_back_by = NULL"
        f" WHERE number IN (SELECT number FROM runs WHERE {_WAITING} AND {condition} AND fingerprint = ?3"
        " AND (?4 IS NULL OR run_id IN (SELECT value FROM json_each(?4)))"
        f" ORDER BY number LIMIT ?5) RETURNING {_COLUMNS}",
        (runner, now, fingerprint, among, most),
    )
    return [_row(row) for row in rows.fetchall()]


def _note_held_back(db: sqlite3.Connection, fingerprint: str, held_back: Mapping[str, str]) -> None:
    """Writes only what has changed."""
    query = f"SELECT number, run_id, held_back_by FROM runs WHERE {_WAITING} AND fingerprint = ?"
    waiting = db.execute(query, (fingerprint,)).fetchall()
    changed = [(held_back.get(run_id), number) for number, run_id, told in waiting if told != held_back.get(run_id)]
    db.executemany("UPDATE runs SET held_back_by = ? WHERE number = ?", changed)


def _queues(db: sqlite3.Connection, fingerprint: str, among: str | None) -> list[QueueDepth]:
    """Of the runs that can be taken now: for this fingerprint those `among` (JSON; None: all), for others what their
    runners do not hold back.
    """
    rows = db.execute(
        "SELECT fingerprint, count(*), min(number),"
        f" (SELECT count(*) FROM runs AS r WHERE {_RUNNING} AND r.fingerprint = q.fingerprint),"
        " (SELECT coalesce(max(started), 0) FROM runs AS r WHERE r.fingerprint = q.fingerprint)"
        f" FROM runs AS q WHERE {_WAITING} AND {_NEEDS_A_PLACE} AND iif(fingerprint = ?1 AND ?2 IS NOT NULL,"
        " run_id IN (SELECT value FROM json_each(?2)), held_back_by IS NULL) GROUP BY fingerprint",
        (fingerprint, among),
    )
    return [QueueDepth(*row) for row in rows]


def _insert(db: sqlite3.Connection, run: NewRun, **further: object) -> None:
    """`further`: columns that `run` does not tell."""
    columns: dict[str, object] = {
        "run_id": run.run_id,
        "question": run.question[:QUESTION_PREVIEW],
        "config": run.config,
        "fingerprint": run.fingerprint,
        "idempotency_key": run.idempotency_key,
        "request_hash": run.request_hash,
        "session_id": run.session_id,
        "parent": run.parent,
        "admitted": run.admitted,
        **further,
    }
    places = ", ".join("?" * len(columns))
    db.execute(f"INSERT INTO runs ({', '.join(columns)}) VALUES ({places})", tuple(columns.values()))


def _keep_digests(db: sqlite3.Connection, digests: Mapping[int, RunDigest | None]) -> None:
    rows = [(number, DIGEST_VERSION, digest.model_dump_json() if digest else "") for number, digest in digests.items()]
    db.executemany("INSERT OR REPLACE INTO digests (number, version, digest) VALUES (?, ?, ?)", rows)


def _interrupt(db: sqlite3.Connection, condition: str, *values: object) -> list[str]:
    """Mark these runs as interrupted now; `values` are ?2, ?3, ... Returns their ids."""
    query = f"UPDATE runs SET state = 'interrupted', ended = ?1 WHERE {condition} RETURNING run_id"
    return [run_id for (run_id,) in db.execute(query, (time.time(), *values)).fetchall()]


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


def _row(values: Sequence[object]) -> RunRow:
    return RunRow(*values)  # pyright: ignore[reportArgumentType] - the schema holds the types
