"""The index of runs: which there are, and how many."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.events.record import JOURNAL_VERSION
from massgen_mcp.request.kind import ListedKind
from massgen_mcp.run_state.status import RunStatus
from massgen_mcp.runs.engine import sql
from massgen_mcp.runs.engine.connection import SqlConnection
from massgen_mcp.runs.engine.rows import RunRow, StateFigures, WorkRow
from massgen_mcp.runs.engine.scope import StorePart


@dataclass(frozen=True, slots=True)
class RunFilter:
    """A choice of runs to list. None: any."""

    state: RunStatus | None = None
    session_id: str | None = None
    """A session of the current user."""
    since: float | None = None
    """Started then or later, in seconds since the epoch."""
    kind: ListedKind = "all"


EVERY_RUN = RunFilter()
SINGLE_RUNS = RunFilter(kind="single")


class RunIndex(StorePart):
    """The rows of runs, for reading."""

    def get(self, run_id: str) -> RunRow:
        """Raises `MassgenError` unknown_run."""
        with self._scope.database.reading() as db:
            return self._scope.get_row(db, run_id)

    def list_recent(self, wanted: RunFilter = EVERY_RUN, *, before: int | None = None, limit: int) -> list[RunRow]:
        """Return rows, newest first. `before`: the `number` of the last row already seen."""
        owner = self._scope.owner
        with self._scope.database.reading() as db:
            return sql.every(
                db,
                "(?1 IS NULL OR state = ?1) AND (?2 IS NULL OR session_id = ?2) AND (?3 IS NULL OR created >= ?3)"
                " AND (?4 IS NULL OR number < ?4) AND (?6 IS NULL OR owner = ?6)"
                " AND ?7 IN ('all', kind) ORDER BY number DESC LIMIT ?5",
                wanted.state,
                wanted.session_id,
                wanted.since,
                before,
                limit,
                "" if owner is None and wanted.session_id is not None else owner,
                wanted.kind,
            )

    def find_unfinished(self, directory: Path) -> list[RunRow]:
        """Return foreground runs below this directory that have not ended and that this version may execute, newest
        first.
        """
        beginning = f"{directory}/"
        condition = (
            "foreground = 1 AND state IN ('running', 'interrupted') AND kept = 'all'"
            f" AND journal_version <= {JOURNAL_VERSION:d} AND substr(directory, 1, ?1) = ?2"
            " AND (?3 IS NULL OR owner = ?3) ORDER BY number DESC"
        )
        with self._scope.database.reading() as db:
            return sql.every(db, condition, len(beginning), beginning, self._scope.owner)

    def count_ahead(self, row: RunRow) -> int:
        """Return how many runs that came before this one wait for a runner, too."""
        with self._scope.database.reading() as db:
            others = "1 = 1" if row.held_back_by else "held_back_by IS NULL"
            if row.parent is not None:
                return 0
            before = "turn < (SELECT turn FROM runs WHERE number = ?1) AND (?2 IS NULL OR owner = ?2)"
            waiting = f"{sql.WAITING} AND {sql.NEEDS_A_PLACE} AND {others} AND {before}"
            return sql.count(db, waiting, row.number, self._scope.owner)

    def find_known(self, run_ids: Collection[str]) -> set[str]:
        """Return those of these ids that are runs, expired ones included."""
        with self._scope.database.reading() as db:
            query = (
                "SELECT run_id FROM runs WHERE run_id IN (SELECT value FROM json_each(?1))"
                " AND (?2 IS NULL OR owner = ?2)"
            )
            return {run_id for (run_id,) in db.execute(query, (json.dumps(list(run_ids)), self._scope.owner))}

    def find_by_prefix(self, prefix: str, limit: int) -> list[str]:
        """Return ids of at most `limit` runs whose ids begin so."""
        with self._scope.database.reading() as db:
            query = "SELECT run_id FROM runs WHERE substr(run_id, 1, ?1) = ?2 AND (?4 IS NULL OR owner = ?4) LIMIT ?3"
            return [run_id for (run_id,) in db.execute(query, (len(prefix), prefix, limit, self._scope.owner))]

    def get_family(self, run_id: str) -> list[RunRow]:
        """Return the run, and all that are nested in it, outer ones first."""
        with self._scope.database.reading() as db:
            return list_family(db, self._scope.get_row(db, run_id))

    def count_states(self) -> list[StateFigures]:
        """Return how many runs there are in each state in which there is one."""
        query = (
            "SELECT state, count(*), min(created), coalesce(sum(usd), 0) FROM runs"
            " WHERE parent IS NULL AND kept != 'moved' AND (?1 IS NULL OR owner = ?1) GROUP BY state ORDER BY state"
        )
        with self._scope.database.reading() as db:
            return [StateFigures(*row) for row in db.execute(query, (self._scope.owner,))]

    def list_work(self) -> list[WorkRow]:
        """Return every run, as far as it tells which process should work on it, also of a store of another version.
        Empty where there is no store.
        """
        with self._scope.database.looking() as db:
            return [] if db is None else [WorkRow(*row) for row in db.execute(f"SELECT {sql.WORK_COLUMNS} FROM runs")]


def list_family(db: SqlConnection, row: RunRow) -> list[RunRow]:
    """Return the run, and all that are nested in it, outer ones first."""
    found = [row]
    for outer in found:
        found += sql.every(db, "parent = ? ORDER BY number", outer.run_id)
    return found
