"""What a run needs of the machine that keeps it, for whoever starts, executes, watches or prunes runs: they are handed
an `Engine`, and reach nothing else of `store`. `tests/engine` is what every other way to keep runs has to pass.
"""

from massgen_mcp.runs.rows import (
    RUN_ID_PREFIX,
    Action,
    Added,
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
    Wish,
    WorkRow,
    new_run_id,
    unknown_run,
)
from massgen_mcp.runs.store.directory import Expirable, FileStore, RunFiles
from massgen_mcp.runs.store.journal import DamagedJournal, EventLog, EventReader, EventWriter
from massgen_mcp.runs.store.local import Engine
from massgen_mcp.runs.store.news import Follower, NewsHost
from massgen_mcp.runs.store.runner_endpoint import Liveness, Waking
from massgen_mcp.runs.store.sqlite.store import RunStore

__all__ = [
    "RUN_ID_PREFIX",
    "Action",
    "Added",
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
    "RunRow",
    "RunStore",
    "SessionMoved",
    "Waking",
    "Wish",
    "WorkRow",
    "new_run_id",
    "unknown_run",
]
