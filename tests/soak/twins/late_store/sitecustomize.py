"""A known-bad twin: a store that acknowledges a run first and writes it down a moment later."""

# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

import threading
import time
from typing import Any

from massgen_mcp.runs import store

LATER = 0.4


def _add(self: store.Store, run_id: str, **request: Any) -> tuple[store.RunRow, bool]:
    row, reused = _real_add(self, run_id, **request)
    if reused:
        return row, True
    with self._lock:
        self._db.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
    self._unwritten = row

    def write() -> None:
        time.sleep(LATER)
        _real_add(self, run_id, **request)

    threading.Thread(target=write, daemon=True).start()
    return row, False


def _get(self: store.Store, run_id: str) -> store.RunRow:
    unwritten = getattr(self, "_unwritten", None)
    return unwritten if unwritten and unwritten.run_id == run_id else _real_get(self, run_id)


_real_add, _real_get = store.Store.add, store.Store.get
store.Store.add, store.Store.get = _add, _get
