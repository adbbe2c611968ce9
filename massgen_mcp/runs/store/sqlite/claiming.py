"""Which runs a runner takes when it asks for work.

Places are counted over all processes. A run that waits for another one would hold a place for nothing, and a full house
of such runs would wait for ever: a nested run works in the place of the run that it was started in, so it needs none.
"""

import json
import sqlite3
import time
from collections.abc import Collection, Mapping

from massgen_mcp.runs.engine.rows import RunRow
from massgen_mcp.runs.store.fair_queue import QueueDepth, allocate
from massgen_mcp.runs.store.sqlite import sql


def claim(
    db: sqlite3.Connection,
    fingerprint: str,
    runner: str,
    max_running: int,
    absent: Collection[str],
    among: Collection[str] | None,
    held_back: Mapping[str, str],
) -> list[RunRow]:
    """See `RunStore.claim`."""
    only = None if among is None else json.dumps(list(among))
    _note_held_back(db, fingerprint, held_back)
    room = max_running - sql.count(db, f"{sql.RUNNING} AND {sql.NEEDS_A_PLACE}")
    queues = [queue for queue in _queues(db, fingerprint, only) if queue.fingerprint not in absent]
    turns = allocate(room, queues).get(fingerprint, 0)
    taken = (runner, time.time(), fingerprint, only)
    rows = _take(db, f"NOT ({sql.NEEDS_A_PLACE})", *taken, -1)
    if turns:
        rows += _take(db, sql.NEEDS_A_PLACE, *taken, turns)
    return sorted(rows, key=lambda row: row.number)


def _take(
    db: sqlite3.Connection, condition: str, runner: str, now: float, fingerprint: str, among: str | None, most: int
) -> list[RunRow]:
    """Let a runner have the oldest of these runs that wait, at most so many; below 0: all. `among` as in `_queues`."""
    rows = db.execute(
        "UPDATE runs SET resumes = resumes + (state = 'interrupted'), state = 'running', runner = ?1,"
        " started = ?2, ended = NULL, aged_from = NULL, held_back_by = NULL"
        f" WHERE number IN (SELECT number FROM runs WHERE {sql.WAITING} AND {condition} AND fingerprint = ?3"
        " AND (?4 IS NULL OR run_id IN (SELECT value FROM json_each(?4)))"
        f" ORDER BY number LIMIT ?5) RETURNING {sql.COLUMNS}",
        (runner, now, fingerprint, among, most),
    )
    return [sql.row_of(row) for row in rows.fetchall()]


def _note_held_back(db: sqlite3.Connection, fingerprint: str, held_back: Mapping[str, str]) -> None:
    """Writes only what has changed."""
    query = f"SELECT number, run_id, held_back_by FROM runs WHERE {sql.WAITING} AND fingerprint = ?"
    waiting = db.execute(query, (fingerprint,)).fetchall()
    changed = [(held_back.get(run_id), number) for number, run_id, held in waiting if held != held_back.get(run_id)]
    db.executemany("UPDATE runs SET held_back_by = ? WHERE number = ?", changed)


def _queues(db: sqlite3.Connection, fingerprint: str, among: str | None) -> list[QueueDepth]:
    """Of the runs that can be taken now: for this fingerprint those `among` (JSON; None: all), for others what their
    runners do not hold back.
    """
    rows = db.execute(
        "SELECT fingerprint, count(*), min(number),"
        f" (SELECT count(*) FROM runs AS r WHERE {sql.RUNNING} AND r.fingerprint = q.fingerprint),"
        " (SELECT coalesce(max(started), 0) FROM runs AS r WHERE r.fingerprint = q.fingerprint)"
        f" FROM runs AS q WHERE {sql.WAITING} AND {sql.NEEDS_A_PLACE} AND iif(fingerprint = ?1 AND ?2 IS NOT NULL,"
        " run_id IN (SELECT value FROM json_each(?2)), held_back_by IS NULL) GROUP BY fingerprint",
        (fingerprint, among),
    )
    return [QueueDepth(*row) for row in rows]
