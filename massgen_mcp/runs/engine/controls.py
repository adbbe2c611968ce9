"""What users ask of active runs: cancel, steer, answer, finish."""

import json
import time

from massgen_mcp.runs.engine import sql
from massgen_mcp.runs.engine.claiming import check_quota
from massgen_mcp.runs.engine.connection import SqlConnection
from massgen_mcp.runs.engine.rows import Control, RunRow, Wish
from massgen_mcp.runs.engine.scope import StorePart

STAYS = "kept = CASE kept WHEN 'moved' THEN 'all' ELSE kept END"
"""Of a run that has ended before it could be moved."""


class RunControls(StorePart):
    """Requests to running runs, open until their executor has read them."""

    def request(self, run_id: str, action: Wish, message: str = "") -> RunRow:
        """Ask for something to be done with a run; one that nobody works on is cancelled right here, and what is nested
        in it. Returns the row after that. Raises `MassgenError` invalid_action for one that was moved, as `adopt`.
        """
        with self._scope.database.transaction() as db:
            row = self._scope.get_row(db, run_id)
            sql.check_here(row)
            if action == "raise_budget" and row.parent is None:
                check_quota(db, self._scope.user, float(message), raised=row)
                db.execute("UPDATE runs SET usd = ? WHERE number = ?", (float(message), row.number))
            if action != "admit":
                self._scope.note(db, row, action)
            return enter_request(db, row, action, message)

    def list_open(self, run_ids: list[str]) -> list[Control]:
        """Return the open controls of these runs, oldest first. One stays open until it is completed, or the run ends;
        `move`, as long as the run is moved.
        """
        among = "run_id IN (SELECT value FROM json_each(?1))"
        with self._scope.database.reading() as db:
            rows = db.execute(
                f"SELECT number, run_id, action, message FROM controls WHERE {among} UNION ALL"
                f" SELECT 0, run_id, 'move', '' FROM runs WHERE {among} AND kept = 'moved' ORDER BY number",
                (json.dumps(run_ids),),
            ).fetchall()
        return [Control(*row) for row in rows]

    def complete(self, numbers: list[int]) -> None:
        """Note that these controls are part of their runs' journals now."""
        with self._scope.database.transaction() as db:
            among = "SELECT CAST(value AS BIGINT) FROM json_each(?)"
            db.execute(f"DELETE FROM controls WHERE number IN ({among})", (json.dumps(numbers),))


def enter_request(db: SqlConnection, row: RunRow, action: Wish, message: str = "") -> RunRow:
    """Cancel a run that no process works on, or leave the request to its executor. Returns the row after that."""
    now = time.time()
    if row.state in ("queued", "interrupted") and action == "cancel":
        db.execute(
            "UPDATE runs SET state = 'cancelled', ended = ?, usd = CASE state WHEN 'queued' THEN 0 ELSE usd END,"
            f" {STAYS} WHERE run_id = ?",
            (now, row.run_id),
        )
        cancel_nested(db, row.run_id)
    elif row.state in ("queued", "running", "interrupted"):
        db.execute(
            "INSERT INTO controls (run_id, action, message, created) VALUES (?, ?, ?, ?)",
            (row.run_id, action, message, now),
        )
    return sql.existing(db, row.run_id, None)


def cancel_nested(db: SqlConnection, run_id: str) -> None:
    """Cancel the runs nested in this one: their results would not be read any more."""
    for row in sql.every(db, f"parent = ? AND {sql.among('state', sql.BUSY)}", run_id, *sql.BUSY):
        enter_request(db, row, "cancel")
