"""A known-bad twin: a store that acknowledges a run first and writes it down much later."""

# pyright: reportPrivateUsage=false

import threading
import time
from typing import Any

from massgen_mcp.runs.engine import index, queue, rows

LATER = 30.0
"""Seconds; longer than the harness lets any server live."""


def _add(self: queue.RunQueue, run: rows.NewRun, **wishes: Any) -> rows.Added:
    added = _real_add(self, run, **wishes)
    if added.reused:
        return added
    with self._scope.database.transaction() as db:
        db.execute("DELETE FROM runs WHERE run_id = ?", (run.run_id,))
    _unwritten[run.run_id] = added.row

    def write() -> None:
        time.sleep(LATER)
        _real_add(self, run, **wishes)
        del _unwritten[run.run_id]

    threading.Thread(target=write, daemon=True).start()
    return added


def _get(self: index.RunIndex, run_id: str) -> rows.RunRow:
    return _unwritten[run_id] if run_id in _unwritten else _real_get(self, run_id)


_unwritten: dict[str, rows.RunRow] = {}
_real_add, _real_get = queue.RunQueue.add, index.RunIndex.get
queue.RunQueue.add, index.RunIndex.get = _add, _get
