"""The rows of runs as one user sees them, which all parts of a store share."""

import time
from dataclasses import dataclass, field

from massgen_mcp.people import OPERATOR, User
from massgen_mcp.runs.engine import sql
from massgen_mcp.runs.engine.connection import SqlConnection, SqlDatabase
from massgen_mcp.runs.engine.rows import RunRow


class Handover:
    """Hands runs to executors, within the transaction that makes them wait. On one machine, runners look for runs
    themselves, and a former executor is gone before its run waits again: there is nothing to do.
    """

    def hand_out(self, db: SqlConnection, run_id: str) -> None:
        """Let an executor take the run from now on."""

    def fence(self, db: SqlConnection, run_id: str) -> None:
        """Refuse events that a former executor of the run still writes."""


@dataclass(frozen=True, slots=True)
class StoreScope:
    """A database of runs, and the user whose runs are seen; None: every run."""

    database: SqlDatabase
    handover: Handover = field(default_factory=Handover)
    user: User | None = None

    @property
    def owner(self) -> str | None:
        """The owner of the runs that are seen; None: any."""
        if self.user is None:
            return None
        return self.user.name

    def get_row(self, db: SqlConnection, run_id: str) -> RunRow:
        """Raises `MassgenError` unknown_run, also for a run that isn't this user's."""
        return sql.existing(db, run_id, self.user)

    def note(self, db: SqlConnection, row: RunRow, action: str) -> None:
        """Enter into the audit log what the user has done to a run, or the operator to a person's run."""
        if self.user is not None or row.owner:
            entry = (time.time(), self.owner or OPERATOR, action, row.run_id)
            db.execute("INSERT INTO audit (at, person, action, run_id) VALUES (?, ?, ?, ?)", entry)


class StorePart:
    """A part of a store: what it knows is in the database, and belongs to the user of its scope."""

    def __init__(self, scope: StoreScope) -> None:
        self._scope = scope
