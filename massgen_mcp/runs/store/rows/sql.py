"""Runs in SQL: the columns of a row, the conditions by which runs are chosen, and how rows are read and written."""

import time
from collections.abc import Collection, Sequence

from massgen_mcp.events.record import JOURNAL_VERSION
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine import NewRun, RunRow, unknown_run
from massgen_mcp.runs.store.rows.connection import SqlConnection

QUESTION_PREVIEW = 200
COLUMNS = (
    "number, run_id, state, question, config, fingerprint, runner, idempotency_key, request_hash, created, started,"
    " ended, session_id, outcome, winner, events, kept,"
    " resumes, directory, foreground, held_back_by, parent, admitted, weak"
)
WORK_COLUMNS = "run_id, state, fingerprint, coalesce(started, created), kept, directory, foreground"
ENDED = tuple(sorted(TERMINAL_STATES))
OVER = (*ENDED, "interrupted")
BUSY = ("queued", "running", "interrupted")
"""States in which a run may still add to its session."""
WAITING = (
    "state IN ('queued', 'interrupted') AND kept = 'all' AND foreground = 0 AND admitted = 1"
    f" AND journal_version <= {JOURNAL_VERSION:d}"
)
"""What a runner could take."""
RUNNING = "state = 'running' AND foreground = 0"
"""What runners work on."""
NEEDS_A_PLACE = "parent IS NULL"


def existing(db: SqlConnection, run_id: str) -> RunRow:
    if (row := one(db, "run_id = ?", run_id)) is None:
        raise unknown_run(run_id)
    return row


def one(db: SqlConnection, condition: str, *values: object) -> RunRow | None:
    row = db.execute(f"SELECT {COLUMNS} FROM runs WHERE {condition}", values).fetchone()
    return None if row is None else row_of(row)


def every(db: SqlConnection, condition: str, *values: object) -> list[RunRow]:
    return [row_of(row) for row in db.execute(f"SELECT {COLUMNS} FROM runs WHERE {condition}", values)]


def count(db: SqlConnection, condition: str, *values: object) -> int:
    return int(db.execute(f"SELECT count(*) FROM runs WHERE {condition}", values).fetchone()[0])


def row_of(values: Sequence[object]) -> RunRow:
    return RunRow(*values)  # pyright: ignore[reportArgumentType] - the schema holds the types


def among(column: str, values: Collection[str]) -> str:
    return f"{column} IN ({', '.join('?' * len(values))})"


def insert(db: SqlConnection, run: NewRun, **further: object) -> None:
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
        "admitted": int(run.admitted),
        **further,
    }
    places = ", ".join("?" * len(columns))
    db.execute(f"INSERT INTO runs ({', '.join(columns)}) VALUES ({places})", tuple(columns.values()))


def interrupt(db: SqlConnection, condition: str, *values: object) -> list[str]:
    """Mark these runs as interrupted now; `values` are ?2, ?3, ... Returns their ids."""
    query = f"UPDATE runs SET state = 'interrupted', ended = ?1 WHERE {condition} RETURNING run_id"
    return [run_id for (run_id,) in db.execute(query, (time.time(), *values)).fetchall()]
