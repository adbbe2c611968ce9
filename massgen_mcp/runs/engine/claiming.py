"""What keeps a run from beginning, and which runs a runner takes when it asks for work: fair between sets of
credentials, first come first served within one.

A free place goes to the credentials with the fewest running runs; among equals to those that were served longest ago,
then to the run that waits longest.

Places are counted over all processes. A run that waits for another one would hold a place for nothing, and a full house
of such runs would wait for ever: a nested run works in the place of the run that it was started in, so it needs none.
"""

import sys
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from massgen_mcp.errors import MassgenError
from massgen_mcp.people import User
from massgen_mcp.runs.engine import sql
from massgen_mcp.runs.engine.connection import SqlConnection
from massgen_mcp.runs.engine.rows import NewRun, RunRow, SessionMoved

if TYPE_CHECKING:  # what reads runs needs nothing of how one is built
    from massgen_mcp.request.build import OnConflict


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """The queue of one set of credentials. `served`: when its last run was started; `head`: its oldest run's number."""

    fingerprint: str
    queued: int
    head: int
    running: int
    served: float


def allocate(room: int, queues: Iterable[QueueDepth]) -> dict[str, int]:
    """How many runs each fingerprint may start now, at most `room` together."""
    turns: dict[str, int] = {}
    waiting = {queue.fingerprint: queue for queue in queues if queue.queued}
    for _ in range(room):
        if not waiting:
            break
        chosen = min(waiting.values(), key=lambda queue: (queue.running, queue.served, queue.head))
        turns[chosen.fingerprint] = turns.get(chosen.fingerprint, 0) + 1
        if chosen.queued == 1:
            del waiting[chosen.fingerprint]
        else:
            waiting[chosen.fingerprint] = replace(chosen, queued=chosen.queued - 1, running=chosen.running + 1)
    return turns


@dataclass(frozen=True, slots=True)
class Claimant:
    """A runner that takes runs: its credentials, its id, and the ids of the only runs that it may take, as JSON."""

    fingerprint: str
    runner: str
    among: str | None


def claim(
    db: SqlConnection, claimant: Claimant, max_running: int, absent: Collection[str], held_back: Mapping[str, str]
) -> list[RunRow]:
    """Do what `RunQueue.claim` does, within a transaction."""
    fingerprint = claimant.fingerprint
    _note_held_back(db, fingerprint, held_back)
    room = max_running - sql.count(db, f"{sql.RUNNING} AND {sql.NEEDS_A_PLACE}")
    queues = [queue for queue in _queues(db, fingerprint, claimant.among) if queue.fingerprint not in absent]
    turns = allocate(room, queues).get(fingerprint, 0)
    rows = _take(db, f"NOT ({sql.NEEDS_A_PLACE})", claimant, sys.maxsize)
    if turns:
        rows += _take(db, sql.NEEDS_A_PLACE, claimant, turns)
    return sorted(rows, key=lambda row: row.number)


def _take(db: SqlConnection, condition: str, claimant: Claimant, most: int) -> list[RunRow]:
    """Let a runner have the oldest of these runs that wait, at most so many."""
    rows = db.execute(
        "UPDATE runs SET resumes = resumes + CASE WHEN state = 'interrupted' THEN 1 ELSE 0 END, state = 'running',"
        " runner = ?1, started = ?2, ended = NULL, aged_from = NULL, held_back_by = NULL"
        f" WHERE number IN (SELECT number FROM runs WHERE {sql.WAITING} AND {condition} AND fingerprint = ?3"
        " AND (?4 IS NULL OR run_id IN (SELECT value FROM json_each(?4)))"
        f" ORDER BY {sql.TURN} LIMIT ?5) RETURNING {sql.COLUMNS}",
        (claimant.runner, time.time(), claimant.fingerprint, claimant.among, most),
    )
    return [sql.row_of(row) for row in rows.fetchall()]


def _note_held_back(db: SqlConnection, fingerprint: str, held_back: Mapping[str, str]) -> None:
    """Writes only what has changed."""
    query = f"SELECT number, run_id, held_back_by FROM runs WHERE {sql.WAITING} AND fingerprint = ?"
    waiting = db.execute(query, (fingerprint,)).fetchall()
    changed = [(held_back.get(run_id), number) for number, run_id, held in waiting if held != held_back.get(run_id)]
    db.executemany("UPDATE runs SET held_back_by = ? WHERE number = ?", changed)


def _queues(db: SqlConnection, fingerprint: str, among: str | None) -> list[QueueDepth]:
    """Of the runs that can be taken now: for this fingerprint those `among` (JSON; None: all), for others what their
    runners do not hold back.
    """
    rows = db.execute(
        "SELECT fingerprint, count(*), min(number),"
        f" (SELECT count(*) FROM runs AS r WHERE {sql.RUNNING} AND r.fingerprint = q.fingerprint),"
        " (SELECT coalesce(max(started), 0) FROM runs AS r WHERE r.fingerprint = q.fingerprint)"
        f" FROM runs AS q WHERE {sql.WAITING} AND {sql.NEEDS_A_PLACE} AND CASE WHEN fingerprint = ?1 AND ?2 IS NOT NULL"
        " THEN run_id IN (SELECT value FROM json_each(?2)) ELSE held_back_by IS NULL END GROUP BY fingerprint",
        (fingerprint, among),
    )
    return [QueueDepth(*row) for row in rows]


# ---------------------------------------------------------------------------------------------------------------------
# What keeps a run from beginning: its idempotency key is taken, its session goes on elsewhere, the queue is full.


def reusable_run(earlier: RunRow, run: NewRun, on_conflict: "OnConflict") -> RunRow:
    same = earlier.request_hash == run.request_hash
    if same and on_conflict == "use_existing":
        return earlier
    raise MassgenError(
        "idempotency_conflict",
        f"this idempotency_key was already used for {('the same' if same else 'another')} request (run "
        f"{earlier.run_id}, {earlier.state}); use another key, or on_conflict=cancel_existing",
    )


def check_session(db: SqlConnection, run: NewRun, *, leaving: RunRow | None) -> None:
    """One writer per session, and nobody's history lacks a turn. `leaving`: a turn that is being cancelled for this."""
    last = max(run.turns_over, default=0)
    condition = f"owner = ? AND session_id = ? AND (number > ? OR {sql.among('state', sql.BUSY)}) ORDER BY number"
    for turn in sql.every(db, condition, run.owner, run.session_id, last, *sql.BUSY):
        if turn.number in run.turns_over or (leaving is not None and turn.number == leaving.number):
            continue
        if turn.busy:
            raise _session_busy(turn)
        if turn.state in sql.ENDED:
            raise SessionMoved


def check_alone(db: SqlConnection, run_id: str) -> None:
    """Whether this run, which was interrupted, may go on as far as the other turns of its session are concerned."""
    condition = (
        "session_id = (SELECT session_id FROM runs WHERE run_id = ?1)"
        " AND owner = (SELECT owner FROM runs WHERE run_id = ?1) AND run_id <> ?1"
        f" AND {sql.among('state', sql.BUSY)}"
    )
    for turn in sql.every(db, condition, run_id, *sql.BUSY):
        if turn.busy:
            raise _session_busy(turn)


def _session_busy(turn: RunRow) -> MassgenError:
    return MassgenError(
        "session_busy",
        f"run {turn.run_id} of this session is {turn.state}; wait until it ends, or cancel it",
    )


def check_queue(db: SqlConnection, max_queued: int | None) -> None:
    if max_queued is not None and sql.count(db, "state = 'queued'") >= max_queued:
        raise MassgenError(
            "queue_full", f"the queue is full ({max_queued} runs); start this run later, or cancel others"
        )


def check_quota(db: SqlConnection, user: User | None, usd: float | None, *, raised: RunRow | None = None) -> None:
    """Refuse a run of more than the user's quota, of at most `usd`, or a budget that is raised to that. Of a run that
    goes on its whole budget counts, of one that has ended what it has cost.
    """
    if user is None:
        return
    person, now = user.person, datetime.now(UTC)
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for span, begun, most_runs, most_usd in (
        ("day", day, person.runs_per_day, person.usd_per_day),
        ("month", day.replace(day=1), person.runs_per_month, person.usd_per_month),
    ):
        runs, spent = db.execute(
            "SELECT count(*), coalesce(sum(usd), 0) FROM runs"
            " WHERE owner = ? AND parent IS NULL AND created >= ? AND number <> ?",
            (user.name, begun.timestamp(), raised.number if raised else 0),
        ).fetchone()
        if most_runs is not None and raised is None and runs >= most_runs:
            raise MassgenError("quota_reached", f"you have reached your quota of runs per {span} (UTC): {most_runs}")
        if most_usd is not None and (usd is None or usd > most_usd - spent):
            left = f"you have {max(0.0, most_usd - spent):.2f} of {most_usd:.2f} USD left for the current {span} (UTC)"
            raise MassgenError("quota_reached", f"{left}, after deducting active runs' budgets; pass a smaller max_usd")
