"""A store in PostgreSQL, workers as processes of their own, and a home that all of them share."""

import signal
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pytest

from massgen_mcp.home import FILES_VARIABLE, STORE_VARIABLE, Home
from massgen_mcp.people import current_user
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.postgres.engine import ClusterEngine, cluster_engine
from tests.harness import SERVER_MODULE, TempHome, end, poll_until
from tests.needs import needs
from tests.postgres import PostgresServer, shared_server

Store = Literal["local", "postgres"]
STORES = [pytest.param("local"), pytest.param("postgres", marks=needs("postgres"))]
TAKES_RUNS = "Starting worker on queues default"


@dataclass
class Worker:
    """A worker, from when it takes runs on."""

    process: subprocess.Popen[bytes]
    log: Path
    pid: int

    def send(self, sign: signal.Signals) -> None:
        end(self.pid, sign)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.process.wait()


@dataclass
class Cluster:
    home: TempHome
    """Of every machine, where files are not in an object store."""
    server: PostgresServer
    url: str
    workers: list[Worker] = field(default_factory=list[Worker])
    _engines: list[ClusterEngine] = field(default_factory=list[ClusterEngine])
    machines: list[Any] = field(default_factory=list[Any])
    """The others."""

    def machine(self, name: str) -> "Cluster":
        """Another machine, with a home of its own."""
        own = replace(self.home, path=self.home.path.with_name(name))
        made = Cluster(own, self.server, self.url)
        self.machines.append(made)
        return made

    def service(self) -> RunService:
        """What one more server would have."""
        return RunService(self.engine(), self.home.environ, current_user)

    def engine(self) -> ClusterEngine:
        files = self.home.extra.get(FILES_VARIABLE)
        engine = cluster_engine(Home(self.home.path, shared=True).ensure(), self.url, "default", files)
        self._engines.append(engine)
        return engine

    def add_worker(
        self, *options: str, prefix: Sequence[str] = (), variables: Mapping[str, str] | None = None
    ) -> Worker:
        """`prefix`: the beginning of its command line."""
        log = self.home.work / f"{self.home.path.name}-worker-{len(self.workers)}.log"
        before = set(self.home.processes("worker"))
        with log.open("wb") as output:
            command = [*prefix, self.home.python, "-m", SERVER_MODULE, "worker", *options]
            process = subprocess.Popen(
                command,
                env={**self.home.environ, **(variables or {})},
                cwd=self.home.work,
                stderr=output,
                stdout=output,
            )
        poll_until(lambda: TAKES_RUNS in log.read_text())
        (pid,) = set(self.home.processes("worker")) - before
        self.workers.append(Worker(process, log, pid))
        return self.workers[-1]

    def close(self) -> None:
        for machine in self.machines:
            machine.close()
        for engine in self._engines:
            engine.close()
        self.home.close()
        for worker in self.workers:
            worker.process.wait()


@contextmanager
def cluster(home: TempHome, server: PostgresServer, **variables: str) -> Generator[Cluster]:
    """An empty store on this server."""
    url = server.empty_store()
    made = Cluster(home.with_variables(**{STORE_VARIABLE: url}, **variables), server, url)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def kept_in(store: Store, home: TempHome, *options: str) -> Generator[TempHome]:
    """The home as programs see it whose runs are kept there; `options`: of the worker, where one is needed."""
    if store == "local":
        yield home
        return
    with cluster(home, shared_server()) as machines:
        machines.add_worker(*options)
        yield machines.home
