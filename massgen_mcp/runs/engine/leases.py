"""Which process works on a run, and what becomes of the run when that process ends."""

import time

from massgen_mcp.events.record import JOURNAL_VERSION
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import sql
from massgen_mcp.runs.engine.connection import SqlConnection
from massgen_mcp.runs.engine.controls import STAYS, cancel_nested
from massgen_mcp.runs.engine.outcomes import keep_digests
from massgen_mcp.runs.engine.scope import StorePart
from massgen_mcp.statistics.digest import digest_of
from massgen_mcp.views.outcome import describe_outcome


class RunLeases(StorePart):
    """Running runs and their executors."""

    def interrupt(self, fingerprint: str, *, of_runner: str | None = None) -> list[str]:
        """Mark the running runs of lost runners, or of this one that was lost. Returns their ids."""
        with self._scope.database.transaction() as db:
            of_lost = f"{sql.RUNNING} AND fingerprint = ?2 AND (?3 IS NULL OR runner = ?3)"
            return self.interrupt_where(db, of_lost, fingerprint, of_runner)

    def mark_lost(self, run_id: str) -> None:
        """Mark a run as interrupted whose foreground process is gone."""
        with self._scope.database.transaction() as db:
            self.interrupt_where(db, "state = 'running' AND foreground = 1 AND run_id = ?2", run_id)

    def release(self, run_id: str, runner: str) -> None:
        """Let a run of this runner wait for one again, as if its own had been lost."""
        with self._scope.database.transaction() as db:
            self.interrupt_where(db, "state = 'running' AND run_id = ?2 AND runner = ?3", run_id, runner)

    def interrupt_where(self, db: SqlConnection, condition: str, *values: object) -> list[str]:
        """Mark these runs as interrupted now; their executors may write no more. `values` are ?2, ?3, ... Returns their
        ids.
        """
        query = f"UPDATE runs SET state = 'interrupted', ended = ?1 WHERE {condition} RETURNING run_id"
        run_ids = [run_id for (run_id,) in db.execute(query, (time.time(), *values)).fetchall()]
        for run_id in run_ids:
            self._scope.handover.fence(db, run_id)
        return run_ids

    def park_until_upgrade(self, run_id: str) -> None:
        """Let a run that has not ended lie until a version looks that writes newer journals than this one."""
        with self._scope.database.transaction() as db:
            query = (
                "UPDATE runs SET state = 'interrupted', ended = ?, journal_version = ? WHERE run_id = ?"
                f" AND {sql.among('state', sql.BUSY)}"
            )
            db.execute(query, (time.time(), JOURNAL_VERSION + 1, run_id, *sql.BUSY))
            self._scope.handover.fence(db, run_id)

    def end(self, run_id: str, end: RunState) -> None:
        """Index how a run ended, so that lists need no journal, and a journal that was cut off later is noticed. Runs
        nested in it that go on are to be cancelled then.
        """
        with self._scope.database.transaction() as db:
            self.note_end(db, run_id, end)

    def note_end(self, db: SqlConnection, run_id: str, end: RunState) -> None:
        """Do what `end` does, within a transaction."""
        winner = end.winner.agent if end.winner else None
        winner = end.agents[winner].info.id if winner in end.agents else winner
        usd = end.spent.settled_usd  # None: its whole budget goes on counting for quotas
        db.execute(
            "UPDATE runs SET state = ?, outcome = ?, winner = ?, events = ?, ended = ?, weak = ?, summary = ?,"
            f" usd = coalesce(?, usd), {STAYS} WHERE run_id = ?",
            (
                end.state,
                end.outcome,
                winner,
                end.seq,
                time.time(),
                " ".join(end.work_done.weak),
                describe_outcome(end),
                usd,
                run_id,
            ),
        )
        db.execute("DELETE FROM controls WHERE run_id = ?", (run_id,))
        cancel_nested(db, run_id)
        keep_digests(db, {sql.existing(db, run_id, None).number: digest_of(end)})
