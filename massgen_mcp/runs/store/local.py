"""Runs on one machine: a SQLite file, a directory per run, and locks that the kernel drops with their process.

`local_engine` is where it is put together; everybody else is handed an `Engine`.
"""

from dataclasses import dataclass

from massgen_mcp.home import Home
from massgen_mcp.runs.store.directory import FileStore
from massgen_mcp.runs.store.runner_endpoint import Liveness
from massgen_mcp.runs.store.sqlite.store import RunStore

DATABASE = "runs.sqlite3"


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts that keep the runs of one home."""

    home: Home
    store: RunStore
    files: FileStore
    liveness: Liveness

    def close(self) -> None:
        self.store.close()


def local_engine(home: Home) -> Engine:
    """Makes and opens nothing yet."""
    return Engine(home, RunStore(home.path / DATABASE), FileStore(home), Liveness(home))
