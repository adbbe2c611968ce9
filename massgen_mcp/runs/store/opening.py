"""Where a store of runs is put together and opened: this machine's own, a SQLite file, a directory per run, and locks
that the kernel drops with their process; or the one of several machines that `MASSGEN_MCP_STORE` names.

Everybody else is handed an `Engine`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from massgen_mcp.errors import MassgenError
from massgen_mcp.home import FILES_VARIABLE, POOL_VARIABLE, STORE_VARIABLE, Home
from massgen_mcp.runs.engine import Engine, FileStore, RunStore
from massgen_mcp.runs.engine.scope import StoreScope
from massgen_mcp.runs.store.runner_endpoint import LocalLiveness
from massgen_mcp.runs.store.sqlite.database import Database

if TYPE_CHECKING:
    from massgen_mcp.runs.store.postgres.engine import ClusterEngine

DATABASE = "runs.sqlite3"
DEFAULT_POOL = "default"
SCHEMES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class LocalEngine(Engine):
    """With the locks, pipes and sockets by which one machine knows who lives."""

    liveness: LocalLiveness


def local_engine(home: Home) -> LocalEngine:
    """Makes and opens nothing yet."""
    return LocalEngine(home, RunStore(StoreScope(Database(home.path / DATABASE))), FileStore(home), LocalLiveness(home))


def open_engine(home: Home, environ: Mapping[str, str]) -> Engine:
    """Makes and opens nothing yet. Raises as `open_cluster`."""
    return open_cluster(home, environ) if environ.get(STORE_VARIABLE) else local_engine(home)


def open_cluster(home: Home, environ: Mapping[str, str]) -> "ClusterEngine":
    """Raises `MassgenError` invalid_arguments where no store of several machines is named, store_unavailable where the
    extra for it is not installed.
    """
    url = environ.get(STORE_VARIABLE, "")
    if not url.startswith(SCHEMES):
        fault = f"begins with {url.partition(':')[0][:20]!r}" if url else "is not set"
        message = f"{STORE_VARIABLE} {fault}; set it to postgresql://USER@HOST/DATABASE, or pass --store"
        raise MassgenError("invalid_arguments", message)
    try:
        from massgen_mcp.runs.store.postgres.engine import cluster_engine  # nothing else needs psycopg
    except ImportError as error:
        message = f"runs in PostgreSQL need an extra: pip install 'massgen-mcp[cluster]' ({error})"
        raise MassgenError("store_unavailable", message) from error
    return cluster_engine(home, url, environ.get(POOL_VARIABLE) or DEFAULT_POOL, environ.get(FILES_VARIABLE))
