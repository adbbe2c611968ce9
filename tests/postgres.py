"""PostgreSQL for tests: a server on a socket in a temporary directory, and an empty store for each test."""

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from massgen_mcp.runs.store.postgres.schema import upgrade
from tests.needs import found

TEMPLATE = "upgraded"
_numbers = count()


class PostgresServer:
    """`url` names the database that there is in any case. `durable`: what is committed survives a cut of the power."""

    def __init__(self, *, durable: bool = False) -> None:
        self._durable = durable
        self.directory = Path(tempfile.mkdtemp(prefix="massgen-pg-"))
        self._data = self.directory / "data"
        self._process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:  # it refuses to work for root
            user = pwd.getpwnam("postgres")
            os.chown(self.directory, user.pw_uid, user.pw_gid)
        self._run("initdb", "-D", str(self._data), "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync").wait()
        self.start()

    @property
    def pid(self) -> int:
        """Of the process whose children are all others of this server."""
        assert self._process is not None
        return self._process.pid

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://tester@/{database}?host={self.directory}"

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        postgres = found("postgres")
        assert postgres is not None
        drop = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        command = [*drop, str(Path(os.path.realpath(postgres)).with_name(program)), *arguments]
        log = (self.directory / "log").open("ab")
        with log:
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=self.directory, start_new_session=True)

    def start(self) -> None:
        """Returns when it takes connections."""
        settings = (
            f"fsync={'on' if self._durable else 'off'}",
            "max_connections=200",
            "listen_addresses=",
            f"unix_socket_directories={self.directory}",
        )
        options = [part for setting in settings for part in ("-c", setting)]
        self._process = self._run("postgres", "-D", str(self._data), *options)
        while True:
            with suppress(psycopg.OperationalError):
                psycopg.connect(self.url()).close()
                return
            assert self._process.poll() is None, (self.directory / "log").read_text()
            time.sleep(0.02)

    def stop(self, *, at_once: bool = False) -> None:
        """`at_once`: as if it had crashed; else connections are closed in order."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT if at_once else signal.SIGINT)
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        self.stop(at_once=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def empty_store(self) -> str:
        """The address of a store of this version without runs."""
        with psycopg.connect(self.url(), autocommit=True) as admin:
            if not admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (TEMPLATE,)).fetchone():
                admin.execute(f"CREATE DATABASE {TEMPLATE}".encode())
                upgrade(self.url(TEMPLATE))
            name = f"store_{next(_numbers)}"
            admin.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}".encode())
        return self.url(name)

    def empty_database(self) -> str:
        """The URL of a database without any table."""
        with psycopg.connect(self.url(), autocommit=True) as admin:
            name = f"empty_{next(_numbers)}"
            admin.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def drop(self, url: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as admin:
            admin.execute(f"DROP DATABASE {conninfo_to_dict(url)['dbname']} WITH (FORCE)".encode())


@cache
def shared_server() -> PostgresServer:
    """One for all tests of this process, which do not stop it."""
    server = PostgresServer()
    atexit.register(server.remove)
    return server
