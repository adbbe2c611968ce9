"""Runs on one machine: a SQLite file, a directory per run, and locks that the kernel drops with their process.

`local_engine` is where it is put together; everybody else is handed an `Engine`.
"""

from dataclasses import dataclass

from massgen_mcp.home import Home
from massgen_mcp.runs.engine import Engine
from massgen_mcp.runs.store.directory import LocalFiles
from massgen_mcp.runs.store.rows.store import Store
from massgen_mcp.runs.store.runner_endpoint import LocalLiveness
from massgen_mcp.runs.store.sqlite.database import Database

DATABASE = "runs.sqlite3"


@dataclass(frozen=True, slots=True)
class LocalEngine(Engine):
    """With the locks, pipes and sockets by which one machine knows who lives."""

    liveness: LocalLiveness


def local_engine(home: Home) -> LocalEngine:
    """Makes and opens nothing yet."""
    return LocalEngine(home, Store(Database(home.path / DATABASE)), LocalFiles(home), LocalLiveness(home))
