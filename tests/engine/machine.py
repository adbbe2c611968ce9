"""The engines that the tests of this directory are run on, each with the faults that its storage can have."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import psycopg

from massgen_mcp.events.record import JOURNAL_VERSION
from massgen_mcp.home import Home
from massgen_mcp.runs.engine import Engine, FrozenRequest, RunFiles
from massgen_mcp.runs.engine.event_log import sealed
from massgen_mcp.runs.engine.journal import JOURNAL
from massgen_mcp.runs.store.opening import DATABASE, LocalEngine, local_engine
from massgen_mcp.runs.store.postgres.engine import ClusterEngine, cluster_engine
from massgen_mcp.runs.store.postgres.event_log import PostgresLog
from tests.faults import ROOT, no_larger_files_than
from tests.postgres import shared_server
from tests.teams import silent_team


class Machine(Protocol):
    """Where runs are kept. Each `open` gives what one more process would have."""

    def open(self) -> Engine: ...

    def close(self) -> None:
        """Close everything that was opened."""
        ...

    def own_files(self, run_id: str) -> RunFiles:
        """Files of a run that a program executes itself, in a place of its own choice."""
        ...

    def tear(self, run: RunFiles) -> None:
        """The process that wrote the log was killed in the middle of an event."""
        ...

    def damage(self, run: RunFiles, seq: int) -> None:
        """This event is not what was written."""
        ...

    def lose(self, run: RunFiles, seq: int) -> None:
        """This event is gone, those after it are not."""
        ...

    def write_newer(self, run: RunFiles, seq: int) -> None:
        """A later version of this program wrote the event."""
        ...

    def damage_request(self, run: RunFiles) -> None: ...

    def no_room(self) -> AbstractContextManager[None]:
        """No file and no log can be written."""
        ...

    def damage_store(self) -> None:
        """The store cannot be read any more."""
        ...

    def outdate_store(self) -> None:
        """A later version of this program has brought the store to its own schema."""
        ...

    def contents(self) -> object:
        """The whole store, to compare."""
        ...


@dataclass
class LocalMachine:
    """A state directory below `path`."""

    path: Path
    _engines: list[LocalEngine] = field(default_factory=list[LocalEngine])

    @property
    def home(self) -> Home:
        return Home(self.path / "home")

    def open(self) -> LocalEngine:
        engine = local_engine(self.home.ensure())
        self._engines.append(engine)
        return engine

    def close(self) -> None:
        for engine in self._engines:
            engine.close()

    def own_files(self, run_id: str) -> RunFiles:
        return RunFiles.create(self.path / "project" / run_id, FrozenRequest("q", silent_team(1)))

    def tear(self, run: RunFiles) -> None:
        with _journal(run).open("ab") as file:
            file.write(b'{"seq":')

    def damage(self, run: RunFiles, seq: int) -> None:
        lines = _journal(run).read_bytes().splitlines(keepends=True)
        lines[seq - 1] = lines[seq - 1].replace(b'"time":', b'"time":1')
        _journal(run).write_bytes(b"".join(lines))

    def lose(self, run: RunFiles, seq: int) -> None:
        lines = _journal(run).read_bytes().splitlines(keepends=True)
        _journal(run).write_bytes(b"".join(lines[: seq - 1] + lines[seq:]))

    def write_newer(self, run: RunFiles, seq: int) -> None:
        with _journal(run).open("ab") as file:
            file.write(sealed(json.dumps(newer_record(seq))))

    def damage_request(self, run: RunFiles) -> None:
        damage_request(run)

    @contextmanager
    def no_room(self) -> Generator[None]:
        with no_larger_files_than(1):
            yield

    def damage_store(self) -> None:
        (self.home.path / DATABASE).write_bytes(b"no SQLite file" * 500)

    def outdate_store(self) -> None:
        with closing(sqlite3.connect(self.home.path / DATABASE)) as db:
            db.execute("PRAGMA user_version=1000")

    def contents(self) -> dict[str, bytes]:
        """`-shm` is no content: readers write into it, too."""
        files = self.home.path.rglob("*")
        return {str(path): path.read_bytes() for path in files if path.is_file() and "-shm" not in path.name}

    def process(self, fingerprint: str, run_id: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.engine.holder", str(self.path), fingerprint, run_id]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, cwd=ROOT)


@dataclass
class PostgresMachine:
    """A store in PostgreSQL, and a directory below `path` that all share."""

    path: Path
    _engines: list[ClusterEngine] = field(default_factory=list[ClusterEngine])
    url: str = field(default_factory=lambda: shared_server().empty_store())

    def open(self) -> ClusterEngine:
        engine = cluster_engine(
            Home(self.path / "home", shared=True).ensure(), self.url, "default", str(self.path / "objects")
        )
        self._engines.append(engine)
        return engine

    def close(self) -> None:
        for engine in self._engines:
            engine.close()
        shared_server().drop(self.url)

    def own_files(self, run_id: str) -> RunFiles:
        path, engine = self.path / "project" / run_id, self.open()
        log = PostgresLog(engine.database, engine.appender, run_id)
        return RunFiles.create(path, FrozenRequest("q", silent_team(1)), event_log=log)

    def _change(self, statement: str, *values: object) -> None:
        with psycopg.connect(self.url, autocommit=True) as db:
            db.execute("SET search_path TO massgen")
            db.execute(statement.encode(), values)

    def tear(self, run: RunFiles) -> None:
        """Nothing is left of a commit that did not come to its end."""

    def damage(self, run: RunFiles, seq: int) -> None:
        changed = "UPDATE events SET body = replace(body, '\"time\":', '\"time\":1') WHERE run = %s AND seq = %s"
        self._change(changed, run.path.name, seq)

    def lose(self, run: RunFiles, seq: int) -> None:
        self._change("DELETE FROM events WHERE run = %s AND seq = %s", run.path.name, seq)

    def write_newer(self, run: RunFiles, seq: int) -> None:
        line = sealed(json.dumps(newer_record(seq))).decode().strip()
        self._change("INSERT INTO events (run, seq, body) VALUES (%s, %s, %s)", run.path.name, seq, line)

    def damage_request(self, run: RunFiles) -> None:
        damage_request(run)

    @contextmanager
    def no_room(self) -> Generator[None]:
        full = "BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END"
        self._change(f"CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ {full} $$")
        self._change("CREATE TRIGGER full_disk BEFORE INSERT ON events EXECUTE FUNCTION full_disk()")
        with no_larger_files_than(1):
            yield
        self._change("DROP FUNCTION full_disk CASCADE")

    def damage_store(self) -> None:
        self._change("ALTER TABLE runs DROP COLUMN state")

    def outdate_store(self) -> None:
        self._change("INSERT INTO schema_steps (step) VALUES ('massgen/9998.sql'), ('massgen/9999.sql')")
        self._change(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND datname = current_database()"
        )

    def contents(self) -> object:
        with psycopg.connect(self.url) as db:
            return [
                db.execute(f"TABLE massgen.{table}".encode()).fetchall()
                for table in ("runs", "controls", "events", "digests", "marks", "procrastinate_jobs")
            ]


def newer_record(seq: int) -> dict[str, object]:
    return {"v": JOURNAL_VERSION + 1, "seq": seq, "time": 1.0, "event": {"type": "agent_praised", "warmth": 3}}


def damage_request(run: RunFiles) -> None:
    path = run.path / "config.json"
    path.write_bytes(path.read_bytes().replace(b'"question"', b'"questiom"'))


def _journal(run: RunFiles) -> Path:
    return run.path / JOURNAL


IMPLEMENTATIONS: dict[str, Callable[[Path], Machine]] = {"local": LocalMachine, "postgres": PostgresMachine}
"""By name: what makes a machine in a directory of the test's own."""
