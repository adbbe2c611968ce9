"""Runs on one machine: a SQLite file, a directory per run, and locks that the kernel drops with their process.

`local_engine` is where it is put together; everybody else is handed an `Engine`.
"""

from massgen_mcp.home import Home
from massgen_mcp.runs.engine import Engine
from massgen_mcp.runs.store.directory import LocalFiles
from massgen_mcp.runs.store.runner_endpoint import LocalLiveness
from massgen_mcp.runs.store.sqlite.store import Store

DATABASE = "runs.sqlite3"


def local_engine(home: Home) -> Engine:
    """Makes and opens nothing yet."""
    return Engine(home, Store(home.path / DATABASE), LocalFiles(home), LocalLiveness(home))
