"""Runs go to another store, come from there, or are entered again after their rows were lost."""

import time
from collections.abc import Sequence
from dataclasses import replace

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.record import JOURNAL_VERSION
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine import sql
from massgen_mcp.runs.engine.connection import SqlConnection
from massgen_mcp.runs.engine.index import list_family
from massgen_mcp.runs.engine.outcomes import set_mark
from massgen_mcp.runs.engine.rows import LostRun, RunRow
from massgen_mcp.runs.engine.scope import StorePart
from massgen_mcp.views.outcome import describe_outcome


class RunMoves(StorePart):
    """Rows that leave a store, and rows that are entered with the history of their runs."""

    def move_out(self, run_id: str, where: str) -> None:
        """Let a run that has not ended, and what is nested in it, go on in another store, and here no more: whoever
        executes it leaves it. `where`: in words. Raises `MassgenError` invalid_action for one that a process executes
        that is no runner.
        """
        with self._scope.database.transaction() as db:
            going_on = [row for row in list_family(db, self._scope.get_row(db, run_id)) if row.state in sql.BUSY]
            for row in going_on:
                if row.foreground and row.state == "running":
                    message = (
                        f"another process (massgen or Python) is executing run {row.run_id}; end that process first"
                    )
                    raise MassgenError("invalid_action", message)
            if not self._scope.get_row(db, run_id).moved:
                self._scope.note(db, self._scope.get_row(db, run_id), "export")
            for row in going_on:
                db.execute(
                    "UPDATE runs SET kept = 'moved', held_back_by = ?,"
                    " state = CASE state WHEN 'queued' THEN 'interrupted' ELSE state END WHERE number = ?",
                    (where, row.number),
                )

    def take_back(self, run_id: str) -> list[RunRow]:
        """Let a run whose export failed, and what is nested in it, go on here, whatever their state. Returns the rows
        that were marked as moved.
        """
        with self._scope.database.transaction() as db:
            marked = [row for row in list_family(db, self._scope.get_row(db, run_id)) if row.moved]
            for row in marked:
                db.execute("UPDATE runs SET kept = 'all', held_back_by = NULL WHERE number = ?", (row.number,))
                if row.state == "interrupted" and not row.foreground and row.admitted:
                    self._scope.handover.hand_out(db, row.run_id)
            return marked

    def restore(self, lost: Sequence[LostRun]) -> list[str]:
        """Enter those of these runs that have no row, or were moved, or have expired, in this order. Returns their ids.
        A key that another run has is that run's; of two of these the later one has it. They are kept as if they had
        ended now.
        """
        entered: list[str] = []
        with self._scope.database.transaction() as db:
            for one in lost:
                known = sql.one(db, "run_id = ?", one.run.run_id)
                if known is not None and known.kept not in ("moved", "nothing"):
                    continue
                if (key := one.run.idempotency_key) is not None:
                    holder = sql.one(db, "idempotency_key = ?", key)
                    if holder is not None and holder.run_id in entered:
                        db.execute("UPDATE runs SET idempotency_key = NULL WHERE number = ?", (holder.number,))
                    elif holder is not None and holder != known:
                        one = replace(one, run=replace(one.run, idempotency_key=None))  # noqa: PLW2901
                _enter(db, one, known)
                self._scope.handover.fence(db, one.run.run_id)
                entered.append(one.run.run_id)
            for row in (self._scope.get_row(db, run_id) for run_id in entered):
                if row.busy and row.admitted:
                    self._scope.handover.hand_out(db, row.run_id)
            return entered


def _enter(db: SqlConnection, lost: LostRun, known: RunRow | None) -> None:
    """`known`: the row that it has already, whose number and place in the order of runs stay."""
    record = lost.record
    over = lost.state in TERMINAL_STATES
    winner = record.winner.agent if over and record.winner else None
    further: dict[str, object] = {
        "state": lost.state,
        "created": lost.created,
        "started": record.started_at,
        "ended": (record.ended_at or time.time()) if lost.state != "queued" else None,
        "outcome": record.outcome if over else None,
        "weak": " ".join(record.work_done.weak) if over else "",
        "summary": describe_outcome(record),
        "winner": record.agents[winner].info.id if winner in record.agents else winner,
        "events": record.seq if record.end else None,
        "foreground": int(lost.alone),
        "journal_version": JOURNAL_VERSION + 1 if lost.newer else 0,
    }
    if known is None:
        sql.insert(db, lost.run, **further)
    else:
        columns = {**sql.columns_of(db, lost.run), **further, "kept": "all"}
        columns |= dict.fromkeys(("runner", "directory", "held_back_by", "aged_from"))
        places = ", ".join(f"{name} = ?" for name in columns)
        db.execute(f"UPDATE runs SET {places} WHERE number = ?", (*columns.values(), known.number))
        db.execute("DELETE FROM controls WHERE run_id = ?", (known.run_id,))
    row = sql.existing(db, lost.run.run_id, None)
    for agent, mark in lost.marks.items():
        set_mark(db, row.number, agent, mark)
    if not over:
        for action, message in lost.controls:
            db.execute(
                "INSERT INTO controls (run_id, action, message, created) VALUES (?, ?, ?, ?)",
                (row.run_id, action, message, time.time()),
            )
