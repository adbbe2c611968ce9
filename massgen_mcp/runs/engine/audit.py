"""What users did to runs."""

from massgen_mcp.runs.engine.rows import AuditEntry
from massgen_mcp.runs.engine.scope import StorePart


class AuditLog(StorePart):
    """Entries that say which user did what, for good."""

    def note(self, run_id: str, action: str) -> None:
        """Note that the user has done this to a run, where there is one or the run belongs to one. What the other parts
        of the store do is noted by them.
        """
        with self._scope.database.transaction() as db:
            self._scope.note(db, self._scope.get_row(db, run_id), action)

    def list_entries(self, *, person: str | None, run_id: str | None, limit: int) -> list[AuditEntry]:
        """Return what was done, newest first, by this person and to this run; None: by any, to any."""
        query = (
            "SELECT at, person, action, run_id FROM audit WHERE (?1 IS NULL OR person = ?1)"
            " AND (?2 IS NULL OR run_id = ?2) AND (?4 IS NULL OR person = ?4) ORDER BY number DESC LIMIT ?3"
        )
        with self._scope.database.reading() as db:
            return [AuditEntry(*row) for row in db.execute(query, (person, run_id, limit, self._scope.owner))]
