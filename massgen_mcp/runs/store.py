"""Which runs exist, whose they are, what is wanted of them: one SQLite database per user.

What happened *in* a run is in its journal; a row's state is an index over that. Every write is durable (WAL,
synchronous=FULL) before the call returns. Safe for many processes. Must not know processes, journals or models.
"""

import json
import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from massgen_mcp.errors import MassgenError
from massgen_mcp.views.snapshot import RunState

Action = Literal["cancel", "finish_now", "steer", "answer"]
"""What can be asked of a run that is queued or goes on."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    question TEXT NOT NULL,
    config TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    runner TEXT,
    idempotency_key TEXT UNIQUE,
    request_hash TEXT NOT NULL,
    created REAL NOT NULL,
    ended REAL,
    resumes INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS runs_by_state ON runs (state, fingerprint);
CREATE TABLE IF NOT EXISTS controls (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    action TEXT NOT NULL,
    message TEXT NOT NULL,
    created REAL NOT NULL
);
"""

QUESTION_PREVIEW = 200


@dataclass(frozen=True, slots=True)
class RunRow:
    """`question` is cut to a preview; `config` says where the team came from; times are seconds since the epoch."""

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
    ended: float | None
    resumes: int
    """How often a runner has taken it over from one that was lost."""


@dataclass(frozen=True, slots=True)
class Control:
    """Something that is wanted of a run; `number` tells it from every other one."""

    number: int
    run_id: str
    action: Action
    message: str


class Store:
    """One connection to the database; methods may be called from any thread."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        with _translated():
            self._db = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute("PRAGMA foreign_keys=ON")
            self._db.executescript(_SCHEMA)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def add(
        self,
        run_id: str,
        *,
        question: str,
        config: str,
        fingerprint: str,
        request_hash: str,
        idempotency_key: str | None,
    ) -> tuple[RunRow, bool]:
        """Queue a run. With a known idempotency key the run of that key is returned instead, and True.

        Raises `MassgenError` idempotency_conflict when the key belongs to another request.
        """
        with self._transaction() as db:
            if idempotency_key is not None and (
                row := _one(db.execute("SELECT * FROM runs WHERE idempotency_key = ?", (idempotency_key,)))
            ):
                if row.request_hash != request_hash:
                    raise MassgenError(
                        "idempotency_conflict",
                        f"this idempotency_key was used for another request, which is run {row.run_id}",
                    )
                return row, True
            db.execute(
                "INSERT INTO runs"
                " (run_id, state, question, config, fingerprint, idempotency_key, request_hash, created)"
                " VALUES (?, 'queued', ?, ?, ?, ?, ?, ?)",
                (
                    run_id,
                    question[:QUESTION_PREVIEW],
                    config,
                    fingerprint,
                    idempotency_key,
                    request_hash,
                    time.time(),
                ),
            )
            return self._get(db, run_id), False

    def get(self, run_id: str) -> RunRow:
        """Raises `MassgenError` unknown_run."""
        with self._reading() as db:
            return self._get(db, run_id)

    def beginning_with(self, prefix: str, limit: int) -> list[str]:
        """Ids of at most `limit` runs that begin so."""
        with self._reading() as db:
            query = "SELECT run_id FROM runs WHERE substr(run_id, 1, ?) = ? LIMIT ?"
            return [row[0] for row in db.execute(query, (len(prefix), prefix, limit))]

    def recent(self, *, state: RunState | None, before: int | None, limit: int) -> list[RunRow]:
        """Newest first; `before` is the `number` of the last row already seen."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT * FROM runs WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR number < ?2)"
                " ORDER BY number DESC LIMIT ?3",
                (state, before, limit),
            ).fetchall()
        return [RunRow(*row) for row in rows]

    # -- what runners do ------------------------------------------------------------------------------------------

    def claim(self, fingerprint: str, runner: str, limit: int) -> list[RunRow]:
        """Take up to `limit` queued or interrupted runs that this runner's credentials fit, oldest first."""
        with self._transaction() as db:
            rows = db.execute(
                "UPDATE runs SET resumes = resumes + (state = 'interrupted'), state = 'running', runner = ?,"
                " ended = NULL WHERE number IN (SELECT number FROM runs WHERE state IN ('queued', 'interrupted')"
                " AND fingerprint = ? ORDER BY number LIMIT ?) RETURNING *",
                (runner, fingerprint, limit),
            ).fetchall()
        return sorted((RunRow(*row) for row in rows), key=lambda row: row.number)

    def waiting(self, fingerprint: str) -> int:
        """How many runs a runner with these credentials could take."""
        with self._reading() as db:
            query = "SELECT count(*) FROM runs WHERE state IN ('queued', 'interrupted') AND fingerprint = ?"
            return int(db.execute(query, (fingerprint,)).fetchone()[0])

    def end(self, run_id: str, state: RunState) -> None:
        """Index a run's terminal state."""
        with self._transaction() as db:
            db.execute("UPDATE runs SET state = ?, ended = ? WHERE run_id = ?", (state, time.time(), run_id))
            db.execute("DELETE FROM controls WHERE run_id = ?", (run_id,))

    def interrupt(self, fingerprint: str, *, except_runner: str | None = None) -> list[str]:
        """Mark the running runs of lost runners; the caller knows that they are lost. Returns their ids."""
        with self._transaction() as db:
            rows = db.execute(
                "UPDATE runs SET state = 'interrupted', ended = ? WHERE state = 'running' AND fingerprint = ?"
                " AND runner IS NOT ? RETURNING run_id",
                (time.time(), fingerprint, except_runner),
            ).fetchall()
        return [row[0] for row in rows]

    def controls(self, run_ids: list[str]) -> list[Control]:
        """What is wanted of these runs, oldest first. It stays wanted until it is `done`, or the run ends."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT number, run_id, action, message FROM controls"
                " WHERE run_id IN (SELECT value FROM json_each(?)) ORDER BY number",
                (json.dumps(run_ids),),
            ).fetchall()
        return [Control(*row) for row in rows]

    def done(self, numbers: list[int]) -> None:
        """These controls are part of their runs' journals now."""
        with self._transaction() as db:
            db.execute("DELETE FROM controls WHERE number IN (SELECT value FROM json_each(?))", (json.dumps(numbers),))

    # -- what people want -----------------------------------------------------------------------------------------

    def want(self, run_id: str, action: Action, message: str = "") -> RunRow:
        """Ask for something to be done with a run; a queued run is cancelled right here. Returns the row after that."""
        with self._transaction() as db:
            row = self._get(db, run_id)
            if row.state in ("queued", "interrupted") and action == "cancel":
                db.execute("UPDATE runs SET state = 'cancelled', ended = ? WHERE run_id = ?", (time.time(), run_id))
            elif row.state in ("queued", "running", "interrupted"):
                db.execute(
                    "INSERT INTO controls (run_id, action, message, created) VALUES (?, ?, ?, ?)",
                    (run_id, action, message, time.time()),
                )
            return self._get(db, run_id)

    def adopt(self, run_id: str, fingerprint: str) -> None:
        """Let an interrupted run go on under other credentials than it was started with."""
        with self._transaction() as db:
            db.execute(
                "UPDATE runs SET fingerprint = ? WHERE run_id = ? AND state = 'interrupted'", (fingerprint, run_id)
            )

    # -- plumbing -------------------------------------------------------------------------------------------------

    @staticmethod
    def _get(db: sqlite3.Connection, run_id: str) -> RunRow:
        row = _one(db.execute("SELECT * FROM runs WHERE run_id = ?", (run_id,)))
        if row is None:
            raise unknown_run(run_id)
        return row

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        with self._lock, _translated():
            yield self._db

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        with self._lock, _translated():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")


def unknown_run(run_id: str) -> MassgenError:
    """The same words for a run that never was and for one that is not the caller's."""
    return MassgenError("unknown_run", f"there is no run {run_id[:80]!r}; list_runs shows the known ones")


def _one(cursor: sqlite3.Cursor) -> RunRow | None:
    row = cursor.fetchone()
    return None if row is None else RunRow(*row)


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise MassgenError("store_unavailable", f"the run store failed: {error}") from error
