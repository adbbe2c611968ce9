"""How old ended runs are, and what is still kept of them."""

from collections.abc import Collection

from massgen_mcp.runs.engine import sql
from massgen_mcp.runs.engine.rows import Kept, RunRow
from massgen_mcp.runs.engine.scope import StorePart


class RetentionMarks(StorePart):
    """The retention clock, and the mark of each run."""

    def start_ageing(self, age: float) -> None:
        """Runs that have ended age from the first time that this is called after their end; `age` is the clock's."""
        with self._scope.database.transaction() as db:
            db.execute(
                f"UPDATE runs SET aged_from = ? WHERE aged_from IS NULL AND {sql.among('state', sql.OVER)}",
                (age, *sql.OVER),
            )

    def list_expired(self, aged_from: float, kept: Collection[Kept], *, interrupted: bool) -> list[RunRow]:
        """Return runs that have ended at that age or before and of which so much is kept, oldest first. Runs in
        directories of their own lie in their user's projects: they never become too old.
        """
        states, kept = (sql.OVER if interrupted else sql.ENDED), tuple(kept)
        with self._scope.database.reading() as db:
            condition = (
                f"aged_from <= ? AND {sql.among('state', states)} AND {sql.among('kept', kept)} AND directory IS NULL"
                " ORDER BY number"
            )
            return sql.every(db, condition, aged_from, *states, *kept)

    def set_kept(self, row: RunRow, kept: Kept) -> bool:
        """Change what is kept of a run. False, and no change, if it goes on again or another process has changed it.

        The idempotency key of an expired run is free again.
        """
        with self._scope.database.transaction() as db:
            found = db.execute(
                "UPDATE runs SET kept = ?, held_back_by = NULL WHERE number = ? AND kept = ?"
                f" AND {sql.among('state', sql.OVER)}",
                (kept, row.number, row.kept, *sql.OVER),
            )
            if kept == "losing_results":
                forget = (
                    "UPDATE runs SET question = '', config = '', summary = '', idempotency_key = NULL"
                    " WHERE number = ? AND kept = ?"
                )
                db.execute(forget, (row.number, kept))
                db.execute("UPDATE marks SET note = '' WHERE number = ?", (row.number,))
            return found.rowcount == 1

    def get_clock(self) -> tuple[float, float, str, float] | None:
        """Return the retention clock as it was left: its age, and wall clock, boot and uptime when it had that age."""
        with self._scope.database.reading() as db:
            return db.execute("SELECT age, wall, boot, uptime FROM retention_clock").fetchone()

    def set_clock(self, age: float, wall: float, boot: str, uptime: float) -> None:
        with self._scope.database.transaction() as db:
            db.execute(
                "INSERT INTO retention_clock (id, age, wall, boot, uptime) VALUES (1, ?1, ?2, ?3, ?4)"
                " ON CONFLICT (id) DO UPDATE SET age = ?1, wall = ?2, boot = ?3, uptime = ?4",
                (age, wall, boot, uptime),
            )
