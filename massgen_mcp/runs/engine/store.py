"""The rows of all runs in a database, one part for each concern."""

from dataclasses import replace
from typing import Self

from massgen_mcp.people import User
from massgen_mcp.runs.engine.audit import AuditLog
from massgen_mcp.runs.engine.controls import RunControls
from massgen_mcp.runs.engine.index import RunIndex
from massgen_mcp.runs.engine.leases import RunLeases
from massgen_mcp.runs.engine.moves import RunMoves
from massgen_mcp.runs.engine.outcomes import EndedRuns
from massgen_mcp.runs.engine.queue import RunQueue
from massgen_mcp.runs.engine.retention_marks import RetentionMarks
from massgen_mcp.runs.engine.scope import StoreScope


class RunStore:
    """The rows of all runs: state, credentials, open controls, and the order of the queue. Each method of a part is one
    transaction.

    A row's state is an index over the run's event log. Every write is durable before the call returns, and safe among
    many processes. Methods may be called from any thread. All raise `MassgenError` disk_full or store_unavailable.

    A user sees no runs but their own; without a user every run is there (`as_user`).
    """

    def __init__(self, scope: StoreScope) -> None:
        self._scope = scope
        self.database = scope.database
        self.index = RunIndex(scope)
        self.queue = RunQueue(scope)
        self.leases = RunLeases(scope)
        self.controls = RunControls(scope)
        self.ended = EndedRuns(scope)
        self.moves = RunMoves(scope)
        self.retention = RetentionMarks(scope)
        self.audit = AuditLog(scope)

    def as_user(self, user: User | None) -> Self:
        """Return the store as this user sees it; None: with every run."""
        return type(self)(replace(self._scope, user=user))
