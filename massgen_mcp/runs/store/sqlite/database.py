"""The SQLite file under the run store: how it is opened, brought up to date, used by many threads, and examined.

Opened when it is first needed, and again after it failed or was replaced, so that a server outlives a store that was
full, locked away or broken for a while.
"""

import random
import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from massgen_mcp.errors import MassgenError
from massgen_mcp.file_systems import refuse_network
from massgen_mcp.home import REBUILD, sync_directory

BUSY_SECONDS = 30
OTHER_HOME = "set MASSGEN_MCP_HOME to a writable directory"

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (  # the first schema had no version number: tables that exist already are kept
        """CREATE TABLE IF NOT EXISTS runs (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            run_id TEXT NOT NULL UNIQUE,
            state TEXT NOT NULL,
            question TEXT NOT NULL,
            config TEXT NOT NULL,
            fingerprint TEXT NOT NULL,
            runner TEXT,
            idempotency_key TEXT UNIQUE,
            request_hash TEXT NOT NULL,
            created REAL NOT NULL,
            ended REAL
        )""",
        "CREATE INDEX IF NOT EXISTS runs_by_state ON runs (state, fingerprint)",
        """CREATE TABLE IF NOT EXISTS controls (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            run_id TEXT NOT NULL REFERENCES runs (run_id),
            action TEXT NOT NULL,
            created REAL NOT NULL
        )""",
    ),
    (  # sessions, outcomes, resuming, retention, turns in the queue
        "ALTER TABLE runs ADD COLUMN session_id TEXT",
        "ALTER TABLE runs ADD COLUMN outcome TEXT",
        "ALTER TABLE runs ADD COLUMN winner TEXT",
        "ALTER TABLE runs ADD COLUMN events INTEGER",
        "ALTER TABLE runs ADD COLUMN started REAL",
        "ALTER TABLE runs ADD COLUMN resumes INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE runs ADD COLUMN kept TEXT NOT NULL DEFAULT 'all'",
        "ALTER TABLE runs ADD COLUMN aged_from REAL",
        "CREATE INDEX runs_by_session ON runs (session_id, number) WHERE session_id IS NOT NULL",
        "CREATE INDEX runs_by_start ON runs (fingerprint, started)",
        "CREATE INDEX runs_kept ON runs (kept, state) WHERE kept <> 'nothing'",
        "ALTER TABLE controls ADD COLUMN message TEXT NOT NULL DEFAULT ''",
        """CREATE TABLE retention_clock (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            age REAL NOT NULL,
            wall REAL NOT NULL,
            boot TEXT NOT NULL,
            uptime REAL NOT NULL
        )""",
    ),
    (  # runners of several machines
        "ALTER TABLE runs ADD COLUMN machine TEXT",
        "ALTER TABLE runs ADD COLUMN lease REAL",
    ),
    (  # a state directory belongs to one machine; runs that need a newer version
        "ALTER TABLE runs DROP COLUMN machine",
        "ALTER TABLE runs DROP COLUMN lease",
        "ALTER TABLE runs ADD COLUMN journal_version INTEGER NOT NULL DEFAULT 0",
    ),
    (  # runs of the command line and of Python, in directories of their own
        "ALTER TABLE runs ADD COLUMN directory TEXT",
        "ALTER TABLE runs ADD COLUMN foreground INTEGER NOT NULL DEFAULT 0",
    ),
    (  # queued runs that are not taken, and why
        "ALTER TABLE runs ADD COLUMN held_back_by TEXT",
    ),
    (  # runs nested in others
        "ALTER TABLE runs ADD COLUMN parent TEXT",
        "ALTER TABLE runs ADD COLUMN admitted INTEGER NOT NULL DEFAULT 1",
        "CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL",
    ),
    (  # what statistics know of a run, and what its user said of it afterwards
        """CREATE TABLE digests (
            number INTEGER PRIMARY KEY REFERENCES runs (number),
            version INTEGER NOT NULL,
            digest TEXT NOT NULL
        )""",
        """CREATE TABLE marks (
            number INTEGER NOT NULL REFERENCES runs (number),
            agent TEXT NOT NULL,
            verdict TEXT NOT NULL,
            note TEXT NOT NULL,
            at REAL NOT NULL,
            PRIMARY KEY (number, agent)
        )""",
    ),
    (  # why a decision is weak
        "ALTER TABLE runs ADD COLUMN weak TEXT NOT NULL DEFAULT ''",
    ),
    (  # people: whose a run is, what it may cost, whose turn it is, who did what
        "ALTER TABLE runs ADD COLUMN owner TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE runs ADD COLUMN usd REAL",
        "ALTER TABLE runs ADD COLUMN turn INTEGER NOT NULL DEFAULT 0",
        "UPDATE runs SET turn = number",
        "CREATE INDEX runs_by_owner ON runs (owner, turn)",
        "CREATE INDEX runs_by_turn ON runs (turn)",
        """CREATE TABLE audit (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            at REAL NOT NULL,
            person TEXT NOT NULL,
            action TEXT NOT NULL,
            run_id TEXT NOT NULL
        )""",
        "CREATE TRIGGER audit_kept BEFORE DELETE ON audit BEGIN SELECT raise(ABORT, 'audit is kept'); END",
        "CREATE TRIGGER audit_stays BEFORE UPDATE ON audit BEGIN SELECT raise(ABORT, 'audit is kept'); END",
    ),
    (  # outcomes as sentences
        "ALTER TABLE runs ADD COLUMN summary TEXT NOT NULL DEFAULT ''",
    ),
    (  # runs of batches and evaluations
        "ALTER TABLE runs ADD COLUMN kind TEXT NOT NULL DEFAULT 'single'",
    ),
)
"""Statements by which a store of version k becomes one of version k + 1. Never change one that was released."""

SCHEMA_VERSION = len(MIGRATIONS)
TABLES = ("runs", "controls", "retention_clock", "digests", "marks", "audit")

_BROKEN = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_REOPEN = (*_BROKEN, "SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_ERROR", "SQLITE_MISUSE")


class Database:
    """One connection, shared by the threads of a process. Every failure is a `MassgenError`: disk_full or
    store_unavailable; what failed has not happened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        with self._lock, self._translated():
            yield self._open_connection()

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """All of it is on disk when the block has been left, or nothing of it has happened."""
        with self._lock, self._translated(), _atomically(self._open_connection()) as db:
            yield db

    @contextmanager
    def hasty_transaction(self) -> Generator[sqlite3.Connection]:
        """All of it or nothing, for every process; but a power cut soon after may undo it."""
        with self._lock, self._translated():
            db = self._open_connection()
            try:
                db.execute("PRAGMA synchronous=NORMAL")
                with _atomically(db):
                    yield db
                db.execute("PRAGMA synchronous=FULL")
            except BaseException:
                self._forget()  # the next connection is as careful as ever
                raise

    def close(self) -> None:
        with self._lock:
            self._forget()

    def put_away_broken(self) -> Path | None:
        """Rename a file that is damaged, and what SQLite keeps beside it; its new place, or None if it is not damaged.
        Whoever has it open finds out by itself.
        """
        self.close()
        path = self._path
        if not path.exists() or not (self.examine() or "").endswith(REBUILD):
            return None
        away = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
        for ending in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                path.with_name(f"{path.name}{ending}").rename(away.with_name(f"{away.name}{ending}"))
        sync_directory(path.parent)
        return away

    def exists(self) -> bool:
        return self._path.exists()

    def described(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}, store schema {SCHEMA_VERSION}"

    def examine(self) -> str | None:
        """What is wrong with the file, and what to do; None if nothing. Reads all of it and changes nothing."""
        try:
            with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)) as db:
                if (version := _version(db)) > SCHEMA_VERSION:
                    return newer_schema(version)
                if version and (missing := _missing_tables(db)):
                    return f"the table {missing[0]} is missing; {REBUILD}"
                (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
                return None if verdict == "ok" else f"{verdict}; {REBUILD}"
        except sqlite3.Error as error:
            return str(_translation(error))

    @contextmanager
    def looking(self) -> Generator[sqlite3.Connection | None]:
        """Changes nothing. Without a table of runs it was emptied, and not opened since."""
        if not self.exists():
            yield None
            return
        try:
            with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True, timeout=10)) as db:
                there = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone()
                yield db if there else None
        except sqlite3.Error as error:
            raise MassgenError("store_unavailable", str(error)) from error

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is not None and self._moved():
            self._forget()
        if self._connection is None:
            if not self._path.parent.is_dir():
                raise MassgenError("store_unavailable", f"{self._path.parent} isn't a directory; {OTHER_HOME}")
            self._connection = _open(self._path)
            self._inode = self._path.stat().st_ino
        return self._connection

    def _newer(self) -> MassgenError | None:
        """Whether a newer version has migrated the store since it was opened here, as what fails then does not tell."""
        with suppress(sqlite3.Error):
            if self._connection is not None and (version := _version(self._connection)) > SCHEMA_VERSION:
                return MassgenError("store_unavailable", newer_schema(version))
        return None

    def _moved(self) -> bool:
        try:
            return self._path.stat().st_ino != self._inode
        except OSError:
            return True

    def _forget(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            newer = self._newer()
            if _error_name(error).startswith(_REOPEN):
                self._forget()
            raise newer or _translation(error) from error
        except OSError as error:
            self._forget()
            raise MassgenError("store_unavailable", f"cannot open the run store: {error.strerror}") from error


def _open(path: Path) -> sqlite3.Connection:
    refuse_network(path.parent)
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        _log_ahead(db)
        db.execute("PRAGMA synchronous=FULL")
        db.execute("PRAGMA foreign_keys=ON")
        if _version(db) != SCHEMA_VERSION:
            _migrate(db)
        _check_tables(db)
    except BaseException:
        db.close()
        raise
    return db


def _log_ahead(db: sqlite3.Connection) -> None:
    """When several processes make a new file a WAL at once, SQLite refuses all but one of them without waiting
    (https://sqlite.org/c3ref/busy_handler.html: it would be a deadlock), so the waiting is done here.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if _error_name(error) != "SQLITE_BUSY" or time.monotonic() >= deadline:
                raise
        else:
            return
        time.sleep(random.uniform(0.001, 0.02))


def _migrate(db: sqlite3.Connection) -> None:
    with _atomically(db):
        version = _version(db)  # another process may have been faster
        if version > SCHEMA_VERSION:
            raise MassgenError("store_unavailable", newer_schema(version))
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                db.execute(statement)
        db.execute(f"PRAGMA user_version={SCHEMA_VERSION:d}")


@contextmanager
def _atomically(db: sqlite3.Connection) -> Generator[sqlite3.Connection]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # some failures have ended it already
            with suppress(sqlite3.Error):
                db.execute("ROLLBACK")
        raise


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _check_tables(db: sqlite3.Connection) -> None:
    if missing := _missing_tables(db):
        raise MassgenError("store_unavailable", f"the run store lacks the table {missing[0]}; {REBUILD}")


def _missing_tables(db: sqlite3.Connection) -> list[str]:
    there = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return [table for table in TABLES if table not in there]


# -- what goes wrong --------------------------------------------------------------------------------------------------


def newer_schema(version: int) -> str:
    return (
        f"a newer massgen-mcp version wrote the run store (schema {version}, this version supports {SCHEMA_VERSION}); "
        "upgrade massgen-mcp, or set MASSGEN_MCP_HOME to another directory"
    )


def _error_name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "")


def _translation(error: sqlite3.Error) -> MassgenError:
    message = f"the run store failed: {error}"
    match _error_name(error):
        case "SQLITE_FULL":
            return MassgenError("disk_full", f"{message}; free some space (`massgen prune` removes old runs)")
        case "SQLITE_BUSY" | "SQLITE_LOCKED":
            return MassgenError("store_unavailable", f"{message} (other processes are using it); try again")
        case name if name.startswith(_BROKEN):
            return MassgenError("store_unavailable", f"{message}; {REBUILD}")
        case _:
            return MassgenError("store_unavailable", f"{message}; for details, run `massgen doctor`")
