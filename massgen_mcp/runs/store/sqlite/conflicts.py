"""What keeps a run from beginning: its idempotency key is taken, its session goes on elsewhere, the queue is full."""

import sqlite3

from massgen_mcp.errors import MassgenError
from massgen_mcp.request.run_request import OnConflict
from massgen_mcp.runs.engine.rows import NewRun, RunRow, SessionMoved
from massgen_mcp.runs.store.sqlite import sql


def reusable_run(earlier: RunRow, run: NewRun, on_conflict: OnConflict) -> RunRow:
    same = earlier.request_hash == run.request_hash
    if same and on_conflict == "use_existing":
        return earlier
    raise MassgenError(
        "idempotency_conflict",
        f"this idempotency_key was used for {'this' if same else 'another'} request, which is run {earlier.run_id}, "
        f"{earlier.state}; take another key, or on_conflict=cancel_existing",
    )


def check_session(db: sqlite3.Connection, run: NewRun, *, leaving: RunRow | None) -> None:
    """One writer per session, and nobody's history lacks a turn. `leaving`: a turn that is being cancelled for this."""
    last = max(run.turns_over, default=0)
    condition = f"session_id = ? AND (number > ? OR {sql.among('state', sql.BUSY)}) ORDER BY number"
    for turn in sql.every(db, condition, run.session_id, last, *sql.BUSY):
        if turn.number in run.turns_over or (leaving is not None and turn.number == leaving.number):
            continue
        if turn.busy:
            raise _session_busy(turn)
        if turn.state in sql.ENDED:
            raise SessionMoved


def check_alone(db: sqlite3.Connection, run_id: str) -> None:
    """Whether this run, which was interrupted, may go on as far as the other turns of its session are concerned."""
    condition = (
        "session_id = (SELECT session_id FROM runs WHERE run_id = ?1) AND run_id <> ?1"
        f" AND {sql.among('state', sql.BUSY)}"
    )
    for turn in sql.every(db, condition, run_id, *sql.BUSY):
        if turn.busy:
            raise _session_busy(turn)


def _session_busy(turn: RunRow) -> MassgenError:
    return MassgenError(
        "session_busy",
        f"run {turn.run_id} of this session is {turn.state}; wait for its end, or cancel it",
    )


def check_queue(db: sqlite3.Connection, max_queued: int | None) -> None:
    if max_queued is not None and (queued := sql.count(db, "state = 'queued'")) >= max_queued:
        raise MassgenError(
            "queue_full", f"{queued} runs are waiting already, which is the limit; start it later, or cancel others"
        )
