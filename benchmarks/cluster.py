"""The embedded store, and PostgreSQL with two workers, by turns in one run: `python -m benchmarks.cluster`; Linux only.

It needs no key, and the system's PostgreSQL, which it starts itself with the settings of its package. With `--before
COMMIT`, which may be repeated, the embedded store as it was at that commit takes its turns, too, under the name of the
commit; the packages that it needs are those of now.
`--json FILE` writes the figures for `python -m benchmarks.scale`. What the rows mean:

- start: from before `start_run` is sent to its reply. first event: to the first event of the run. Of one scripted agent
  who takes 0.3 s.
- told: from the last event of that run to the reply of `wait_run`, which has waited since the start.
- runs: of three scripted agents, 33 events and 7 calls each, 100 at once, in rounds, by each store in turn, through two
  servers of that store. executing: the CPU of the runner, or of both workers.
- the lock: what orders changes of rows in PostgreSQL. alone: the time of the three transactions of a run while nothing
  else is asked. held: how often it was found to be held while the runs went on.
- connections: to PostgreSQL, of one worker or server.
- a further event: of 50 runs that write streamed text together.
- look for lost runs: what two of the workers ask every second, while 10,000 runs go on.
- fetch from an empty queue: what every worker with free places does for each run that is started.
- news: the CPU of a server by which one of 1,000 waiters hears that a run is not his.
"""

import argparse
import asyncio
import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from procrastinate import sql

from benchmarks.one_run import QUESTION
from benchmarks.processes import cpu_seconds, end, environment, peak_mib, runner_pids, tree_cpu_seconds
from benchmarks.server import OURS, ROOT, Server
from benchmarks.table import Table, machine
from massgen_mcp.events.agent_work import TextDelta
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import RunCancelled
from massgen_mcp.home import IDLE_VARIABLE, QUEUED_VARIABLE, RUNNING_VARIABLE, STORE_VARIABLE, Home
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import NewRun, new_run_id
from massgen_mcp.runs.store.postgres.database import SESSION, STORE_LOCK
from massgen_mcp.runs.store.postgres.engine import ClusterEngine, cluster_engine
from massgen_mcp.runs.store.postgres.event_log import PostgresLog
from massgen_mcp.runs.store.postgres.news import CHANNEL, NewsListener, Subscription
from tests.needs import found
from tests.postgres import PostgresServer

SERVERS, WORKERS, PLACES, ROUNDS, WARM = 2, 2, 100, 4, 20
AGENT_SECONDS = 0.3
TEAM = ["scripted/a", "scripted/b", "scripted/c"]
VARIABLES = {RUNNING_VARIABLE: str(PLACES), QUEUED_VARIABLE: "100000", IDLE_VARIABLE: "3600"}
BUSY, ALONE, FETCHES, WAITERS, NEWS = 10_000, 100, 100, 1000, 1000
APPENDING, APPENDED = 50, 40
GOING_ON = "SELECT count(*) FROM runs WHERE state IN ('queued', 'running', 'interrupted')"


class Embedded:
    """One store, the servers that start runs in it, and who executes them."""

    def __init__(self, name: str, home: Path, stack: ExitStack, root: Path = ROOT) -> None:
        self.name, self.home = name, home
        self._stack, self._root = stack, root
        self.agent = home / "agent.yaml"
        step = {"answer": "forty-two", "delay_seconds": AGENT_SECONDS}
        agent = {"id": "a", "backend": {"type": "scripted", "script": [step]}}
        self.agent.write_text(json.dumps({"agents": [agent]}))
        self.servers = [stack.enter_context(Server(home, self.variables(), root=root)) for _ in range(SERVERS)]

    def variables(self) -> dict[str, str]:
        return VARIABLES

    def executing(self) -> list[int]:
        return runner_pids(self.home)

    def going_on(self) -> int:
        with closing(sqlite3.connect(f"file:{self.home / 'runs.sqlite3'}?mode=ro", uri=True)) as store:
            return int(store.execute(GOING_ON).fetchone()[0])

    def events(self) -> int:
        return sum(path.read_bytes().count(b"\n") for path in self.home.glob("runs/*/events.jsonl"))

    def ends(self, run_id: str) -> tuple[float, float]:
        """When the first and the last event of a run were."""
        first, *_, last = (self.home / "runs" / run_id / "events.jsonl").read_text().splitlines()
        return json.loads(first)["time"], json.loads(last)["time"]

    def cpu(self) -> dict[str, float]:
        return {
            "executing": sum(map(cpu_seconds, self.executing())),
            "servers": sum(cpu_seconds(server.pid) for server in self.servers),
        }


class Shared(Embedded):
    """PostgreSQL, with workers."""

    def __init__(self, name: str, home: Path, stack: ExitStack) -> None:
        self.postgres = PostgresServer(durable=True)
        stack.callback(self.postgres.remove)
        self.url = self.postgres.empty_store()
        self.database = stack.enter_context(psycopg.connect(self.url, autocommit=True))
        self.database.execute(SESSION)
        self.workers = [stack.enter_context(self._worker(home, number)) for number in range(WORKERS)]
        super().__init__(name, home, stack)

    @contextmanager
    def _worker(self, home: Path, number: int) -> Generator[int]:
        log = home / f"worker-{number}.log"
        command = [sys.executable, "-m", OURS, "worker", "--concurrency", str(PLACES // WORKERS)]
        environ = {**environment(home), "PYTHONPATH": str(ROOT), **self.variables()}
        with log.open("wb") as output:
            process = subprocess.Popen(command, cwd=home, env=environ, stdout=output, stderr=output)
        try:
            while "Starting worker" not in log.read_text():
                if process.poll() is not None:
                    raise SystemExit(log.read_text())
                time.sleep(0.05)
            yield process.pid
        finally:
            end(process.pid)
            process.wait()

    def variables(self) -> dict[str, str]:
        return {**VARIABLES, STORE_VARIABLE: self.url}

    def executing(self) -> list[int]:
        return self.workers

    def _one(self, query: str) -> int:
        (value,) = self.database.execute(query.encode()).fetchone() or (0,)
        return int(value)

    def going_on(self) -> int:
        return self._one(GOING_ON)

    def events(self) -> int:
        return self._one("SELECT count(*) FROM events")

    def ends(self, run_id: str) -> tuple[float, float]:
        query = b"SELECT body FROM events WHERE run = %s ORDER BY seq"
        (first,), *_, (last,) = self.database.execute(query, (run_id,)).fetchall()
        return json.loads(first)["time"], json.loads(last)["time"]

    def cpu(self) -> dict[str, float]:
        return {**super().cpu(), "PostgreSQL": tree_cpu_seconds(self.postgres.pid)}

    def connections(self) -> int:
        return self._one(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    def bytes_per_event(self) -> float:
        return self._one("SELECT pg_total_relation_size('events')") / self.events()

    @contextmanager
    def watching_the_lock(self, held: list[bool]) -> Generator[None]:
        over = threading.Event()
        query = (
            b"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND granted"
            b" AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )

        def watch() -> None:
            with psycopg.connect(self.url, autocommit=True) as connection:
                while not over.wait(0.05):
                    (locks,) = connection.execute(query, (STORE_LOCK,)).fetchone() or (0,)
                    held.append(bool(locks))

        with ThreadPoolExecutor(1) as threads:
            threads.submit(watch)
            try:
                yield
            finally:
                over.set()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster",
        description="Measure PostgreSQL with two workers beside the embedded store.",
    )
    parser.add_argument("--runs", type=int, default=1000, metavar="N", help="of three agents, by each (default 1000)")
    parser.add_argument("--pairs", type=int, default=30, metavar="N", help="single runs by each (default 30)")
    parser.add_argument(
        "--before", metavar="COMMIT", action="append", default=[], help="also measure the embedded store of this commit"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    if found("postgres") is None:
        print("NOTHING IS MEASURED: there is no PostgreSQL on this system (Debian's package: postgresql)")
        return
    table, load = Table(), os.getloadavg()[0]
    with ExitStack() as stack:
        work = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="massgen-mcp-cluster-", ignore_cleanup_errors=True))
        )

        def home(name: str) -> Path:
            (work / name).mkdir()
            return work / name

        shared = Shared("PostgreSQL", home("shared"), stack)
        stores = [Embedded("embedded", home("embedded"), stack), shared]
        for commit in options.before:
            sources = _checked_out(commit, home(f"sources of {commit}"))
            stores.append(Embedded(commit, home(f"as at {commit}"), stack, sources))
        _runs(Table(), stores, WARM, 1)
        _latency(Table(), stores, 2)
        _latency(table, stores, options.pairs)
        _runs(table, stores, options.runs, ROUNDS)
        _of_postgresql(table, shared)
    where = f"{machine(1)}\nLoad before: {load:.1f}."
    print(where, table, _ratios(table, [store.name for store in stores]), sep="\n\n")
    if options.json:
        figures = {name: {"unit": unit, "median": round(table.median(name, unit), 4)} for name, unit in table.rows}
        on = f"{os.cpu_count()} cores, Python {platform.python_version()}, load before {load:.1f}."
        options.json.write_text(json.dumps({"machine": on, "figures": figures}, indent=2) + "\n")


def _checked_out(commit: str, place: Path) -> Path:
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", place], input=archive, check=True)
    return place


def _turns(stores: list[Embedded], times: int) -> Iterable[Embedded]:
    for number in range(times):
        print(f"\r{number + 1} of {times} ... ", end="", file=sys.stderr, flush=True)
        first = number % len(stores)
        yield from (*stores[first:], *stores[:first])


def _latency(table: Table, stores: list[Embedded], pairs: int) -> None:
    taken: dict[str, list[float]] = {f"{store.name}: {what}": [] for what in LATENCIES for store in stores}
    for store in _turns(stores, pairs):
        server = store.servers[0]
        sent = time.time()
        run_id = server.call("start_run", question=QUESTION, config=str(store.agent))["run_id"]
        answered = time.time()
        state = server.call("wait_run", run_id=run_id, timeout_seconds=50)["status"]
        told = time.time()
        assert state == "completed", state
        first, last = store.ends(run_id)
        for what, value in zip(LATENCIES, (answered - sent, first - sent, told - last), strict=True):
            taken[f"{store.name}: {what}"].append(value)
    for name, values in taken.items():
        ordered = sorted(values)
        table.add(f"{name}, p50", "ms", ordered[len(ordered) // 2])
        table.add(f"{name}, p90", "ms", ordered[len(ordered) * 9 // 10])


LATENCIES = ("start", "first event", "told")


def _runs(table: Table, stores: list[Embedded], runs: int, rounds: int) -> None:
    """So many runs by each store in all."""
    each = max(SERVERS, runs // rounds // SERVERS * SERVERS)
    for store in _turns(stores, rounds):
        used, events, held = store.cpu(), store.events(), list[bool]()
        with store.watching_the_lock(held) if isinstance(store, Shared) else ExitStack():
            began = time.monotonic()
            with ThreadPoolExecutor(SERVERS) as threads:
                list(threads.map(_start, store.servers, [each // SERVERS] * SERVERS))
            started = time.monotonic() - began
            while store.going_on():
                time.sleep(0.05)
            wall = time.monotonic() - began
        events = store.events() - events
        table.add(f"{store.name}: runs", "runs/s", each / wall)
        table.add(f"{store.name}: starts", "runs/s", each / started)
        table.add(f"{store.name}: events per run", "events", events / each)
        for what, seconds in store.cpu().items():
            spent = seconds - used.get(what, 0.0)
            table.add(f"{store.name}: CPU, {what}, per run", "ms", spent / each)
            if what != "servers":
                table.add(f"{store.name}: CPU, {what}, per event", "us", spent / events)
        if held:
            table.add(f"{store.name}: the lock, held", "%", 100 * sum(held) / len(held))
    for store in stores:
        table.add(f"{store.name}: peak of who executes", "MiB", max(map(peak_mib, store.executing())))


def _start(server: Server, runs: int) -> None:
    for _ in range(runs):
        server.call("start_run", question=QUESTION, models=TEAM)


def _of_postgresql(table: Table, shared: Shared) -> None:
    every = shared.connections()
    for server in shared.servers:
        server.end()
    time.sleep(1)  # PostgreSQL hears of it
    workers = shared.connections()
    table.add("connections of a worker", "connections", workers / WORKERS)
    table.add("connections of a server", "connections", (every - workers) / SERVERS)
    table.add("size of an event in PostgreSQL", "bytes", shared.bytes_per_event())
    url = shared.postgres.empty_store()
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(SESSION)
        with closing(cluster_engine(Home(shared.home, shared=True), url, "nobody")) as engine:
            for number in range(ALONE):
                state = RunState()
                state.apply(LogRecord(seq=1, time=1.0, event=RunCancelled()))
                began = time.perf_counter()
                run_id, epoch = _taken(engine)
                engine.store.jobs.end_taken(run_id, epoch, state)
                if number:  # the first one opens the connection
                    table.add("the lock, of one run alone", "ms", time.perf_counter() - began)
            before = tree_cpu_seconds(shared.postgres.pid), time.process_time()
            asyncio.run(_append([_taken(engine) for _ in range(APPENDING)], engine))
            after = tree_cpu_seconds(shared.postgres.pid), time.process_time()
            for who, spent in zip(("PostgreSQL", "worker"), (after[0] - before[0], after[1] - before[1]), strict=True):
                table.add(f"a further event: CPU, {who}", "us", spent / APPENDING / APPENDED)
            database.execute(_MANY, {"many": BUSY})
            database.execute(b"ANALYZE")
            for _ in range(5):
                began = time.perf_counter()
                database.execute(sql.queries["select_stalled_jobs_by_heartbeat"].encode(), _STALLED).fetchall()
                assert engine.store.jobs.hand_out_lost()[APPENDING:] == []
                table.add(f"look for lost runs, of {BUSY:,}", "ms", time.perf_counter() - began)
                began = time.perf_counter()
                for _ in range(FETCHES):
                    database.execute(b"SELECT procrastinate_fetch_job_v2(ARRAY['empty'], 1)")
                table.add("fetch from an empty queue", "ms", (time.perf_counter() - began) / FETCHES)
        table.add("news, per waiter", "us", asyncio.run(_news(url, database)))


def _taken(engine: ClusterEngine) -> tuple[str, int]:
    """A new run that somebody has taken, and by which epoch."""
    run = NewRun(new_run_id(), QUESTION, "", "nobody", "")
    engine.store.queue.add(run)
    taken = engine.store.jobs.take(run.run_id, "nobody")
    assert taken is not None
    return run.run_id, taken[1]


async def _append(runs: list[tuple[str, int]], engine: ClusterEngine) -> None:
    """So many events of each run, as workers write what models stream."""

    async def append(run_id: str, epoch: int) -> None:
        log = PostgresLog(engine.database, engine.appender, run_id).taken(epoch).append()
        for _ in range(APPENDED):
            log.record(TextDelta(agent="agent_a", call_id="agent_a.1.1.1", text="forty-two " * 10))
            await log.settle()

    await asyncio.gather(*(append(*run) for run in runs))


_STALLED = {"queue": None, "task_name": None, "seconds_since_heartbeat": 6}
_MANY = b"""
WITH added AS (
    INSERT INTO runs (run_id, state, question, config, fingerprint, request_hash, created)
    SELECT 'run-' || number, 'running', '', '', 'nobody', '', 0 FROM generate_series(1, %(many)s) AS number
    RETURNING run_id
)
INSERT INTO procrastinate_jobs (queue_name, task_name, lock, args, status)
SELECT 'nobody', 'run', run_id, '{}', 'doing' FROM added
"""


async def _news(url: str, database: psycopg.Connection[Any]) -> float:
    listener = NewsListener(url)
    with ExitStack() as stack:
        last = Subscription(lambda run_id, _: run_id == "run-last")
        for subscription in (last, *(Subscription(lambda run_id, _: run_id == "run-other") for _ in range(WAITERS))):
            stack.enter_context(listener.subscribed(subscription))
        await last.changed()
        query = f"SELECT pg_notify('{CHANNEL}', %s)".encode()
        database.execute(query, ("run-last!",))
        await last.changed()  # it listens
        before = time.process_time()
        for _ in range(NEWS // 10):
            database.execute(query, (" ".join(["run-mrn7vd6l5ve2ruqvcjc3yvlnrq-"] * 10),))
        database.execute(query, ("run-last!",))
        await last.changed()
        listener.close()
        return (time.process_time() - before) / NEWS / WAITERS


def _ratios(table: Table, names: list[str]) -> str:
    """Medians of the others to those of the embedded store."""
    told = list[str]()
    for name in names[1:]:
        wanted = [(f"{what}, {share}", "ms") for what in LATENCIES for share in ("p50", "p90")]
        wanted += [("runs", "runs/s"), ("CPU, executing, per run", "ms")]
        ratios = [
            f"{what} {table.median(f'{name}: {what}', unit) / table.median(f'embedded: {what}', unit):.2f}"
            for what, unit in wanted
        ]
        told.append(f"{name} to embedded: {'; '.join(ratios)}.")
    return "\n".join(told)


if __name__ == "__main__":
    main()
