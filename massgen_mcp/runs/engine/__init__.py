"""What keeps runs: their rows, event logs and files, and who is alive.

Whoever starts, watches or prunes runs is handed an `Engine` and asks only what is here. There are two: `local`, with
SQLite, files and locks of one machine, and `postgres`, for several. What both share is here; what each has of its own
is in `runs.store`. `tests/engine` is what each of them has to pass.
"""

from dataclasses import dataclass, replace
from typing import Self

from massgen_mcp.home import Home
from massgen_mcp.people import User
from massgen_mcp.runs.engine.event_log import DamagedJournal, EventLog, EventReader, EventWriter, TakenOver
from massgen_mcp.runs.engine.files import Expirable, FileStore, RunFiles
from massgen_mcp.runs.engine.index import SINGLE_RUNS, RunFilter, RunIndex
from massgen_mcp.runs.engine.liveness import Follower, Liveness, NewsHost
from massgen_mcp.runs.engine.rows import (
    RUN_ID_PREFIX,
    Action,
    Added,
    AuditEntry,
    CallerAnswer,
    Control,
    EarlierChanges,
    EndedRow,
    FrozenRequest,
    Kept,
    LostRun,
    Nesting,
    NewRun,
    RunRow,
    SessionMoved,
    StateFigures,
    Wish,
    WorkRow,
    new_run_id,
    unknown_run,
)
from massgen_mcp.runs.engine.store import RunStore

__all__ = [
    "RUN_ID_PREFIX",
    "SINGLE_RUNS",
    "Action",
    "Added",
    "AuditEntry",
    "CallerAnswer",
    "Control",
    "DamagedJournal",
    "EarlierChanges",
    "EndedRow",
    "Engine",
    "EventLog",
    "EventReader",
    "EventWriter",
    "Expirable",
    "FileStore",
    "Follower",
    "FrozenRequest",
    "Kept",
    "Liveness",
    "LostRun",
    "Nesting",
    "NewRun",
    "NewsHost",
    "RunFiles",
    "RunFilter",
    "RunIndex",
    "RunRow",
    "RunStore",
    "SessionMoved",
    "StateFigures",
    "TakenOver",
    "Wish",
    "WorkRow",
    "new_run_id",
    "unknown_run",
]


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts that keep the runs of one home. `pool`: of workers, which execute the runs with keys of their own;
    None: runners do it, with the keys of whoever started a run. `user`: its runs alone are there; None: all.
    """

    home: Home
    store: RunStore
    files: FileStore
    liveness: Liveness
    pool: str | None = None
    user: User | None = None

    @property
    def owner(self) -> str:
        """The owner of the runs that are started."""
        if self.user is None:
            return ""
        return self.user.name

    def as_user(self, user: User | None) -> Self:
        """Return the engine as this user sees it: with their runs, and the workers that execute them."""
        if user is self.user:
            return self
        pool = self.pool
        if pool is not None and user is not None and user.person.pool:
            pool = user.person.pool
        return replace(self, store=self.store.as_user(user), pool=pool, user=user)

    def limits_in_use(self) -> list[tuple[str, str, int, int, int]]:
        """Address and name of each limit of providers that processes share now; how much of it is held, of how much,
        and by how many. Raises `MassgenError` store_unavailable.
        """
        return []

    def close(self) -> None:
        self.store.database.close()
