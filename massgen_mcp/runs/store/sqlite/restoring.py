"""Runs are entered again whose rows were lost."""

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import replace

from massgen_mcp.events.record import JOURNAL_VERSION
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine import LostRun
from massgen_mcp.runs.store.sqlite import sql
from massgen_mcp.views.firmness import firmness


def restore(db: sqlite3.Connection, lost: Sequence[LostRun]) -> list[str]:
    """See `engine.RunStore.restore`."""
    entered: list[str] = []
    for one in lost:
        if sql.one(db, "run_id = ?", one.run.run_id) is not None:
            continue
        if (key := one.run.idempotency_key) is not None:
            holder = sql.one(db, "idempotency_key = ?", key)
            if holder is not None and holder.run_id in entered:
                db.execute("UPDATE runs SET idempotency_key = NULL WHERE number = ?", (holder.number,))
            elif holder is not None:
                one = replace(one, run=replace(one.run, idempotency_key=None))  # noqa: PLW2901
        _enter(db, one)
        entered.append(one.run.run_id)
    return entered


def _enter(db: sqlite3.Connection, lost: LostRun) -> None:
    record = lost.record
    over = lost.state in TERMINAL_STATES
    winner = record.winner.agent if over and record.winner else None
    sql.insert(
        db,
        lost.run,
        state=lost.state,
        created=lost.created,
        started=record.started_at,
        ended=(record.ended_at or time.time()) if lost.state != "queued" else None,
        outcome=record.outcome if over else None,
        weak=" ".join(firmness(record).weak) if over else "",
        winner=record.agents[winner].info.id if winner in record.agents else winner,
        events=record.seq if record.end else None,
        foreground=int(lost.alone),
        journal_version=JOURNAL_VERSION + 1 if lost.newer else 0,
    )
