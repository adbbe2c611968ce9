"""What statistics know of ended runs, and what users said of them."""

import json
import sys
from collections.abc import Collection, Mapping

from massgen_mcp.request.kind import ListedKind
from massgen_mcp.runs.engine import sql
from massgen_mcp.runs.engine.connection import SqlConnection
from massgen_mcp.runs.engine.rows import EndedRow
from massgen_mcp.runs.engine.scope import StorePart
from massgen_mcp.statistics.digest import DIGEST_VERSION, Mark, RunDigest, as_kept, from_kept


class EndedRuns(StorePart):
    """Ended runs with their digests and marks."""

    def list_ended(
        self,
        *,
        since: float | None = None,
        config: str | None = None,
        run_ids: Collection[str] | None = None,
        newest: int | None = None,
        kind: ListedKind = "all",
    ) -> list[EndedRow]:
        """Return runs that have ended and that are not nested in others, oldest first, expired ones included. `since`:
        started then or later; `config`: with a team from there; `run_ids`: these runs alone, nested or not; `newest`:
        so many of them at most, the last ones.
        """
        digest = f"(SELECT digest FROM digests WHERE number = runs.number AND version = {DIGEST_VERSION:d})"
        # From the last row on until there are enough: an index of states would have all ended runs sorted first, with
        # their digests.
        query = (
            f"SELECT {sql.COLUMNS}, {digest} FROM runs WHERE CASE WHEN {sql.among('state', sql.ENDED)} THEN TRUE END"
            " AND CASE WHEN ? IS NULL THEN parent IS NULL ELSE run_id IN (SELECT value FROM json_each(?)) END"
            " AND (? IS NULL OR created >= ?) AND (? IS NULL OR config = ?) AND (? IS NULL OR owner = ?)"
            " AND ? IN ('all', kind) ORDER BY number DESC LIMIT ?"
        )
        among, owner = (None if run_ids is None else json.dumps([*run_ids])), self._scope.owner
        chosen = (*sql.ENDED, among, among, since, since, config, config, owner, owner, kind, newest or sys.maxsize)
        marks: dict[int, dict[str, Mark]] = {}
        with self._scope.database.reading() as db:
            rows = db.execute(query, chosen).fetchall()
            for number, agent, verdict, note, at in db.execute("SELECT number, agent, verdict, note, at FROM marks"):
                marks.setdefault(number, {})[agent] = Mark(verdict=verdict, note=note, at=at)
        return [
            EndedRow(
                row := sql.row_of(values),
                kept is not None,
                from_kept(kept) if kept else None,
                marks.get(row.number, {}),
            )
            for *values, kept in reversed(rows)
        ]

    def keep_digests(self, digests: Mapping[int, RunDigest | None]) -> None:
        """Keep what was read of the records of ended runs, by number; None: nothing is left of it."""
        with self._scope.database.transaction() as db:
            keep_digests(db, digests)

    def mark(self, run_id: str, agent: str, mark: Mark | None) -> None:
        """Note what the user says of an agent, by its id, or, with an empty one, of the run's answer; None: nothing
        more. It outlives the run's results, without its note.
        """
        with self._scope.database.transaction() as db:
            row = self._scope.get_row(db, run_id)
            self._scope.note(db, row, "mark")
            set_mark(db, row.number, agent, mark)


def keep_digests(db: SqlConnection, digests: Mapping[int, RunDigest | None]) -> None:
    rows = [(number, DIGEST_VERSION, as_kept(digest) if digest else "") for number, digest in digests.items()]
    query = (
        "INSERT INTO digests (number, version, digest) VALUES (?1, ?2, ?3)"
        " ON CONFLICT (number) DO UPDATE SET version = ?2, digest = ?3"
    )
    db.executemany(query, rows)


def set_mark(db: SqlConnection, number: int, agent: str, mark: Mark | None) -> None:
    """None: nothing is said any more."""
    db.execute("DELETE FROM marks WHERE number = ? AND agent = ?", (number, agent))
    if mark is not None:
        values = (number, agent, mark.verdict, mark.note, mark.at)
        db.execute("INSERT INTO marks (number, agent, verdict, note, at) VALUES (?, ?, ?, ?, ?)", values)
