"""For how long a runner may go on with its runs, where runners of several machines share a store.

Must not know what runs are or how they are executed.
"""

import threading
import time
from collections.abc import Collection

from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.store import Holder, Store


class Lease:
    """What lets a runner go on with its runs, as runners on other machines see it.

    A runner that stood still for longer than its lease may have been taken for lost. It asks before it writes again, so
    that a journal has one writer. May be used from several threads.
    """

    def __init__(self, store: Store, holder: Holder, active: Collection[str]) -> None:
        """`active`: the runs that the runner works on, as they change."""
        self._store = store
        self._holder = holder
        self._active = active
        self._lost: set[str] = set()
        self._renewing = threading.Lock()
        self._until = time.monotonic() + holder.lease_seconds

    def left(self) -> float:
        """Seconds. Runs that were taken since the last renewal have more."""
        return self._until - time.monotonic()

    def renew(self) -> set[str]:
        """Hold on to the runs; returns the ids of those that were given to another runner."""
        with self._renewing:
            begun, active = time.monotonic(), set(self._active)
            self._lost = (self._lost & active) | (active - self._store.renew(self._holder))
            self._until = begun + self._holder.lease_seconds
            return self._lost

    def check(self, run_id: str) -> None:
        """Raises `MassgenError` store_unavailable if the run is no longer ours to write to."""
        if self.left() <= 0:
            self.renew()
        if run_id in self._lost:
            raise MassgenError("store_unavailable", "the run was taken over by a runner on another machine")
