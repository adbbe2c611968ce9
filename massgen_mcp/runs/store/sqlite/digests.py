"""What statistics know of ended runs, and what their users said of them afterwards, in SQL."""

import json
import sqlite3
from collections.abc import Collection, Mapping

from massgen_mcp.runs.engine import EndedRow
from massgen_mcp.runs.store.sqlite import sql
from massgen_mcp.statistics.digest import DIGEST_VERSION, Mark, RunDigest, as_kept, from_kept


def ended_rows(
    db: sqlite3.Connection, since: float | None, config: str | None, run_ids: Collection[str] | None
) -> list[EndedRow]:
    """See `RunStore.ended`."""
    digest = f"(SELECT digest FROM digests WHERE number = runs.number AND version = {DIGEST_VERSION:d})"
    query = (
        f"SELECT {sql.COLUMNS}, {digest} FROM runs WHERE {sql.among('state', sql.ENDED)}"
        " AND CASE WHEN ? IS NULL THEN parent IS NULL ELSE run_id IN (SELECT value FROM json_each(?)) END"
        " AND (? IS NULL OR created >= ?) AND (? IS NULL OR config = ?) ORDER BY number"
    )
    among = None if run_ids is None else json.dumps([*run_ids])
    rows = db.execute(query, (*sql.ENDED, among, among, since, since, config, config)).fetchall()
    marks: dict[int, dict[str, Mark]] = {}
    for number, agent, verdict, note, at in db.execute("SELECT number, agent, verdict, note, at FROM marks"):
        marks.setdefault(number, {})[agent] = Mark(verdict=verdict, note=note, at=at)
    return [
        EndedRow(
            row := sql.row_of(values),
            kept is not None,
            from_kept(kept) if kept else None,
            marks.get(row.number, {}),
        )
        for *values, kept in rows
    ]


def keep_digests(db: sqlite3.Connection, digests: Mapping[int, RunDigest | None]) -> None:
    rows = [(number, DIGEST_VERSION, as_kept(digest) if digest else "") for number, digest in digests.items()]
    db.executemany("INSERT OR REPLACE INTO digests (number, version, digest) VALUES (?, ?, ?)", rows)


def set_mark(db: sqlite3.Connection, number: int, agent: str, mark: Mark | None) -> None:
    """None: nothing is said any more."""
    db.execute("DELETE FROM marks WHERE number = ? AND agent = ?", (number, agent))
    if mark is not None:
        values = (number, agent, mark.verdict, mark.note, mark.at)
        db.execute("INSERT INTO marks (number, agent, verdict, note, at) VALUES (?, ?, ?, ?, ?)", values)


def forget_notes(db: sqlite3.Connection, number: int) -> None:
    db.execute("UPDATE marks SET note = '' WHERE number = ?", (number,))
