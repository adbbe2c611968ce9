"""PostgreSQL as the store of runs: connections that are opened again after they were lost, and the words of its SQL."""

import random
import re
import select
import threading
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.store.postgres.schema import MOVING_LOCK, SCHEMA, SCHEMA_VERSION, STORE_LOCK, check_schema

CONNECT_SECONDS = 10
PATIENCE_SECONDS = 20.0
"""For so long a connection that was lost is tried again, as long as a restart of PostgreSQL takes."""
RETRY_SECONDS = 0.2
ATTEMPTS = 5
IDLE_SECONDS = 4
"""A process that stops for so long within a transaction loses it: others wait for what it holds."""
SESSION = f"SET search_path TO {SCHEMA}; SET idle_in_transaction_session_timeout TO '{IDLE_SECONDS}s'".encode()
"""What every connection begins with."""

PostgresConnection = psycopg.Connection[tuple[Any, ...]]


class TranslatingConnection:
    """A connection that understands the SQL of runs (see `engine.connection`)."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def execute(self, query: str, values: Sequence[object] = (), /) -> psycopg.Cursor[tuple[Any, ...]]:
        places = {f"p{place}": value for place, value in enumerate(values, 1)}
        return self._connection.execute(_postgres_query(query), places)

    def executemany(self, query: str, rows: Iterable[Sequence[object]], /) -> None:
        for row in rows:
            self.execute(query, row)


@cache
def _postgres_query(query: str) -> bytes:
    places = iter(range(1, query.count("?") + 1))
    named = re.sub(r"\?(\d*)", lambda found: f"%(p{found[1] or next(places)})s", query.replace("%", "%%"))
    return named.replace("json_each(", "json_array_elements_text(").encode()


def connect(url: str, *, timeout: int = CONNECT_SECONDS) -> PostgresConnection:
    """A connection whose statements are each a transaction. Values go into the text of a statement, as the SQL of runs
    does not tell their types. Raises `psycopg.Error`.
    """
    cursor = psycopg.ClientCursor[tuple[Any, ...]]
    connection = psycopg.connect(url, autocommit=True, connect_timeout=timeout, cursor_factory=cursor)
    connection.execute(SESSION)
    return connection


def is_away(error: psycopg.Error) -> bool:
    """Whether PostgreSQL could not be reached, or left while it was asked."""
    if isinstance(error, psycopg.errors.IdleInTransactionSessionTimeout):
        return True
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "57P")[:3] in ("57P", "080")


def pause_before_retry() -> None:
    """Between two attempts to reach PostgreSQL; not all processes at once."""
    time.sleep(RETRY_SECONDS * random.uniform(0.5, 1.5))


class LazyConnection:
    """One connection, for one thread at a time; opened when it is first needed, and again after it was lost."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.lock = threading.RLock()
        self._connection: PostgresConnection | None = None
        self._opened = False

    def ready(self, patience: float = PATIENCE_SECONDS) -> PostgresConnection:
        """Raises `psycopg.Error`; one that was lost is tried again for so many seconds before."""
        if self._connection is not None and not _is_usable(self._connection):
            self.close()
        deadline = time.monotonic() + (patience if self._opened else 0.0)
        while self._connection is None:
            try:
                self._connection = connect(self._url)
                check_schema(self._connection)
                self._opened = True
            except psycopg.OperationalError as error:
                self.close()
                if not is_away(error) or time.monotonic() > deadline:
                    raise
                pause_before_retry()
            except BaseException:
                self.close()
                raise
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None


def _is_usable(connection: PostgresConnection) -> bool:
    """An idle connection says something only when it is closed, or has news of little interest."""
    if connection.closed:
        return False
    readable = select.select([connection.pgconn.socket], [], [], 0)[0]
    with suppress(psycopg.Error):
        return not readable or connection.execute("SELECT 1").rowcount == 1
    return False


class RetryingConnection(TranslatingConnection):
    """Statements that are repeated where PostgreSQL left before its reply."""

    def __init__(self, line: LazyConnection) -> None:
        super().__init__(line.ready())
        self._line = line

    def execute(self, query: str, values: Sequence[object] = (), /) -> psycopg.Cursor[tuple[Any, ...]]:
        for _ in range(ATTEMPTS):
            try:
                return super().execute(query, values)
            except psycopg.Error as error:
                if not is_away(error):
                    raise
            self._connection = self._line.ready()
        return super().execute(query, values)


class PostgresDatabase:
    """See `engine.connection.SqlDatabase`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._reads, self._writes = LazyConnection(url), LazyConnection(url)

    @contextmanager
    def reading(self) -> Generator[TranslatingConnection]:
        """Each statement is one that may be repeated."""
        with self._reads.lock, translated():
            yield RetryingConnection(self._reads)

    @contextmanager
    def transaction(self, *, hasty: bool = False) -> Generator[TranslatingConnection]:
        with self._writes.lock, translated():
            connection = self._writes.ready()
            with connection.transaction():
                lock_store(connection, hasty=hasty)
                yield TranslatingConnection(connection)

    def hasty_transaction(self) -> AbstractContextManager[TranslatingConnection]:
        return self.transaction(hasty=True)

    @contextmanager
    def alone(self) -> Generator[None]:
        """For one process of all at a time, which moves a run out or in."""
        with translated():
            connection = connect(self.url)
        with connection:
            with translated():
                connection.execute("SELECT pg_advisory_lock(%s)", (MOVING_LOCK,))
            yield

    def close(self) -> None:
        for line in (self._reads, self._writes):
            with line.lock:
                line.close()

    def put_away_broken(self) -> Path | None:
        return None

    def exists(self) -> bool:
        return True

    def described(self) -> str:
        return f"PostgreSQL, store schema {SCHEMA_VERSION}"

    def examine(self) -> str | None:
        try:
            with self.reading() as db:
                db.execute("SELECT count(*) FROM runs")
        except MassgenError as error:
            return str(error)
        return None

    def looking(self) -> AbstractContextManager[TranslatingConnection]:
        return self.reading()


def lock_store(connection: PostgresConnection, *, hasty: bool = False) -> None:
    """Until the transaction ends: nobody else changes rows of runs. `hasty`: its end does not wait for the disk."""
    commit = b", set_config('synchronous_commit', 'off', true)" if hasty else b""
    connection.execute(b"SELECT pg_advisory_xact_lock(%s)" + commit, (STORE_LOCK,))


@contextmanager
def translated() -> Generator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise translation(error) from error


def translation(error: psycopg.Error) -> MassgenError:
    message = " ".join(str(error).split())
    if isinstance(error, psycopg.errors.DiskFull):
        return MassgenError("disk_full", f"PostgreSQL's disk is full: {message}; free some space there")
    if is_away(error):
        return MassgenError("store_unavailable", f"PostgreSQL cannot be reached: {message}")
    return MassgenError("store_unavailable", f"the run store failed: {message}; PostgreSQL's log may have details")
