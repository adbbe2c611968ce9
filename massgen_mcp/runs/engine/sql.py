"""Runs in SQL: the columns of a row, the conditions by which runs are chosen, and how rows are read and written."""

from collections.abc import Collection, Sequence
from dataclasses import fields

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.record import JOURNAL_VERSION
from massgen_mcp.people import User
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine.connection import SqlConnection
from massgen_mcp.runs.engine.rows import NewRun, RunRow, unknown_run

QUESTION_PREVIEW = 200
_FIELDS = tuple(field.name for field in fields(RunRow))
COLUMNS = ", ".join(_FIELDS)
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
TURN = "turn, number"
"""The order in which runs of the same credentials begin."""


def existing(db: SqlConnection, run_id: str, user: User | None) -> RunRow:
    """Raises `MassgenError` unknown_run, also for a run that isn't this user's; None may see every run."""
    row = one(db, "run_id = ?", run_id)
    if row is None or (user is not None and user.name != row.owner):
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
    return RunRow(**dict(zip(_FIELDS, values, strict=True)))  # pyright: ignore[reportArgumentType] - as in the schema


def among(column: str, values: Collection[str]) -> str:
    return f"{column} IN ({', '.join('?' * len(values))})"


def insert(db: SqlConnection, run: NewRun, **further: object) -> None:
    """`further`: columns that `run` does not tell."""
    turn = 0 if run.parent else _next_turn(db, run.owner)
    columns = columns_of(db, run) | {"turn": turn, **further}
    places = ", ".join("?" * len(columns))
    db.execute(f"INSERT INTO runs ({', '.join(columns)}) VALUES ({places})", tuple(columns.values()))


def columns_of(db: SqlConnection, run: NewRun) -> dict[str, object]:
    """What `run` tells. A nested run has the owner of the one that it is nested in."""
    outer = one(db, "run_id = ?", run.parent) if run.parent is not None else None
    return {
        "run_id": run.run_id,
        "question": run.question[:QUESTION_PREVIEW],
        "config": run.config,
        "fingerprint": run.fingerprint,
        "idempotency_key": run.idempotency_key,
        "request_hash": run.request_hash,
        "session_id": run.session_id,
        "parent": run.parent,
        "admitted": int(run.admitted),
        "owner": outer.owner if outer else run.owner,
        "usd": run.usd,
        "kind": run.kind,
    }


def _next_turn(db: SqlConnection, owner: str) -> int:
    """Of a run that is added now, in the order in which runs begin: one after its owner's last one, and after the one
    that is first in the queue. So whoever queues many runs lets others in between; one person's begin as they came.
    """
    (own,) = db.execute("SELECT max(turn) FROM runs WHERE owner = ?", (owner,)).fetchone()
    (head,) = db.execute("SELECT min(turn) FROM runs WHERE state = 'queued' AND parent IS NULL").fetchone()
    if head is None:
        (head,) = db.execute("SELECT max(turn) FROM runs").fetchone()
    return 1 + max(own or 0, head or 0)


def check_here(row: RunRow) -> None:
    """Raises `MassgenError` invalid_action for a run that goes on in another store."""
    if row.moved:
        raise MassgenError("invalid_action", f"run {row.run_id} was {row.moved}")
