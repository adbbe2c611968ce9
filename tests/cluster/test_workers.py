"""Runs of several machines: nothing is lost, doubled or answered twice, whatever becomes of workers and PostgreSQL."""

import json
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TypeVar

import anyio
import anyio.to_thread
import psycopg
import pytest

from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.agent_work import ModelReplied
from massgen_mcp.events.parts import Event as RunEvent
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import FinishRequested, RunCancelled, RunCompleted, RunResumed
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine import EventWriter
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.postgres.event_log import PostgresLog, TakenOver
from massgen_mcp.runs.view.run_view import RunView
from tests.cluster.stage import TAKES_RUNS, Cluster, cluster
from tests.commands import run_command
from tests.harness import (
    COMMAND_MODULE,
    PATIENCE_SECONDS,
    SERVER_MODULE,
    TempHome,
    after,
    agent,
    call,
    expect_error,
    home,
    poll_until,
    wait_until,
)
from tests.needs import needs
from tests.postgres import PostgresServer, shared_server
from tests.run_requests import asked
from tests.soak.crowd import call_at_once, crowd
from tests.soak.worker_kills import kill_workers
from tests.teams import team

__all__ = ["home"]

EventT = TypeVar("EventT", bound=RunEvent)

pytestmark = [needs("postgres"), pytest.mark.uncounted]


@pytest.fixture
def machines(home: TempHome) -> Iterator[Cluster]:
    with cluster(home, shared_server()) as made:
        yield made


def waiting_team(gate: Path) -> Config:
    """One agent answers at once, the other when there is this file."""
    return team([{"answer": "forty-two"}], [{"answer": "42", **after(gate)}])


async def begun(service: RunService, config: Config) -> str:
    """A run of which a worker has had the first reply."""
    view, _ = await service.start(await service.prepare(asked("six times seven?", config)))
    with anyio.fail_after(60):
        while not events(view, ModelReplied):
            await anyio.sleep(0.05)
    return view.row.run_id


def events(view: RunView, kind: type[EventT]) -> list[EventT]:
    found = [record.event for record in view.directory.event_log.read()]
    return [event for event in found if isinstance(event, kind)]


async def ended(service: RunService, run_id: str) -> RunView:
    """As it is once its end is in the store; in the log it is a moment earlier."""
    with anyio.fail_after(90):
        view = await service.watcher.wait(run_id, until="terminal", seconds=90, cursor=None)
        while view.row.state not in TERMINAL_STATES:
            await anyio.sleep(0.05)
            view = await service.watcher.get_run(run_id)
        return view


def assert_whole(view: RunView, *, resumed: int) -> None:
    """Every reply is there once, and so is the end, in the log as in the store."""
    assert (view.state, view.row.state, view.row.outcome is not None) == ("completed", "completed", True)
    replies = [event.call_id for event in events(view, ModelReplied)]
    assert len(replies) == len(set(replies))
    assert (len(events(view, RunCompleted)), len(events(view, RunResumed))) == (1, resumed)
    assert view.row.events == view.snapshot.seq


async def test_runs_whose_workers_are_killed_at_any_moment_end_once_and_whole(home: TempHome) -> None:
    assert "lost 0, doubled 0, torn 0" in await kill_workers(home, kills=3, workers=2, seed=1)


async def test_what_a_worker_does_after_it_was_taken_for_dead_does_not_count(machines: Cluster) -> None:
    service, gate = machines.service(), machines.home.work / "gate"
    frozen = machines.add_worker()
    run_id = await begun(service, waiting_team(gate))
    machines.add_worker()
    frozen.send(signal.SIGSTOP)
    with anyio.fail_after(60):
        while not events(await service.watcher.get_run(run_id), RunResumed):
            await anyio.sleep(0.05)
    frozen.send(signal.SIGCONT)
    gate.touch()
    assert_whole(await ended(service, run_id), resumed=1)
    await wait_until(lambda: f"run {run_id} continues elsewhere" in frozen.log.read_text())


def test_who_stops_in_the_middle_of_a_change_keeps_nobody_waiting(machines: Cluster) -> None:
    stopped, other = machines.engine().store, machines.engine().store
    with (
        ThreadPoolExecutor() as threads,
        pytest.raises(MassgenError, match="idle-in-transaction"),
        stopped.database.transaction(),
    ):
        threads.submit(other.retention.start_ageing, 0.0).result(timeout=60)
    stopped.retention.start_ageing(0.0)


async def test_only_who_has_taken_a_run_last_writes_its_events_and_its_end(machines: Cluster) -> None:
    first, second = machines.engine(), machines.engine()
    service = machines.service()
    view, _ = await service.start(await service.prepare(asked("q", waiting_team(machines.home.work / "gate"))))
    logs: list[EventWriter] = []
    for engine, worker in ((first, "one"), (second, "two")):
        taken = engine.store.jobs.take(view.row.run_id, worker)
        assert taken is not None
        logs.append(engine.files.taken(*taken, machines.home.work)[0].event_log.append())
    late, last = logs
    state = RunState()
    for log in logs:
        log.ends_with(state)
        log.record(RunCancelled())
    state.apply(LogRecord(seq=1, time=1.0, event=RunCancelled()))
    with pytest.raises(TakenOver):
        await late.settle()
    assert second.store.index.get(view.row.run_id).state == "running"
    await last.settle()
    assert second.store.index.get(view.row.run_id).state == "cancelled", "with the event, before anybody says so"
    assert len(view.directory.event_log.read()) == 1


async def test_a_run_ends_with_its_last_event_and_not_with_earlier_ones_that_are_still_being_written(
    machines: Cluster,
) -> None:
    """Else whoever looks between the two finds an end, and a record that seems to be cut off before it."""
    engine = machines.engine()
    service = machines.service()
    view, _ = await service.start(await service.prepare(asked("q", waiting_team(machines.home.work / "gate"))))
    taken = engine.store.jobs.take(view.row.run_id, "one")
    assert taken is not None
    files, written, state = Event(), Event(), RunState()

    def before() -> None:
        files.set()
        assert written.wait(60)

    log = PostgresLog(engine.database, engine.appender, view.row.run_id)
    writer = log.taken(taken[1], before).append()
    writer.listen(state.apply)
    writer.ends_with(state)
    writer.record(FinishRequested())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.settle)
        assert await anyio.to_thread.run_sync(files.wait, 60)
        writer.record(RunCancelled())
        written.set()
    assert (engine.store.index.get(view.row.run_id).state, len(view.directory.event_log.read())) == ("running", 1)
    await writer.settle()
    assert (engine.store.index.get(view.row.run_id).state, len(view.directory.event_log.read())) == ("cancelled", 2)


async def test_a_worker_that_is_told_to_leave_hands_its_runs_over(machines: Cluster) -> None:
    service, gate = machines.service(), machines.home.work / "gate"
    first = machines.add_worker()
    run_id = await begun(service, waiting_team(gate))
    first.send(signal.SIGTERM)
    assert first.process.wait(30) == 0
    assert (await service.watcher.get_run(run_id)).row.state == "interrupted", "nobody has to find out"
    second = machines.add_worker()
    gate.touch()
    assert_whole(await ended(service, run_id), resumed=1)
    assert "lost runs" not in second.log.read_text()


async def test_runs_and_waiters_outlast_a_crash_and_a_restart_of_postgresql(home: TempHome) -> None:
    server, waited = PostgresServer(), list[RunView]()
    try:
        with cluster(home, server) as machines:
            service, gate = machines.service(), home.work / "gate"
            machines.add_worker()
            run_id = await begun(service, waiting_team(gate))
            async with anyio.create_task_group() as tasks:

                async def wait() -> None:
                    waited.append(await ended(service, run_id))

                tasks.start_soon(wait)
                for at_once in (False, True):
                    await anyio.to_thread.run_sync(lambda at_once=at_once: server.stop(at_once=at_once))
                    if at_once:
                        gate.touch()  # what happens meanwhile is written later
                    await anyio.to_thread.run_sync(server.start)
            assert_whole(waited[0], resumed=0)
            assert machines.workers[0].process.poll() is None
    finally:
        server.remove()


async def test_a_run_is_started_watched_steered_and_ended_through_any_server(machines: Cluster) -> None:
    home, gate = machines.home, machines.home.work / "gate"
    config = home.config("waits", agent("one", {"answer": "forty-two"}), agent("two", {"answer": "42", **after(gate)}))
    async with home.client() as here, home.client() as there:
        waiting = await call(here, "start_run", question="six times seven?", config=config)
        assert waiting["status"] == "queued"
        assert "no worker is alive" in str(waiting), "whoever waits is told why in vain"
        machines.add_worker()
        run_id = waiting["run_id"]
        seen = await call(there, "wait_run", run_id=run_id, until="change", cursor=0, timeout_seconds=30)
        assert seen["status"] == "running"
        await call(there, "control_run", run_id=run_id, action="steer", message="Show your work.")
        gate.touch()
        done = await call(here, "wait_run", run_id=run_id, timeout_seconds=50)
        assert done["status"] == "completed"
        assert (await call(there, "get_result", run_id=run_id))["answer"] == done["answer"]
        log = (home.run_directory(run_id) / "massgen.log").read_text()
        assert "Show your work." in log
        stuck = home.config("stuck", agent("one", {"hang": True}))
        other = (await call(there, "start_run", question="q", config=stuck))["run_id"]
        await call(here, "wait_run", run_id=other, until="change", cursor=0, timeout_seconds=30)
        told = run_command(home, SERVER_MODULE, "cancel", other)
        assert told.returncode == 0, told.stderr
        assert (await call(here, "wait_run", run_id=other, timeout_seconds=30))["status"] == "cancelled"
        listed = await call(there, "list_runs")
        assert {run["run_id"]: run["status"] for run in listed["runs"]} == {run_id: "completed", other: "cancelled"}
        code, text = await expect_error(there, "start_run", question="q", models=["scripted/x"], context_paths=["/"])
        assert (code, "need directories on this machine" in text) == ("invalid_arguments", True)
    shown = run_command(home, SERVER_MODULE, "result", run_id[:12])
    assert (shown.returncode, done["answer"] in shown.stdout) == (0, True)


async def test_many_clients_with_one_key_start_one_run(machines: Cluster) -> None:
    machines.add_worker()
    arguments = {"question": "q", "models": ["scripted/x"], "idempotency_key": "the one"}
    async with crowd(machines.home, 2) as servers:
        replies = await call_at_once(servers, "start_run", [[arguments] * 10] * 2)
    contents = [reply.content for reply in replies if reply.content is not None]
    assert len(contents) == 20, {reply.refusal for reply in replies}
    assert len({content["run_id"] for content in contents}) == len(machines.home.runs) == 1
    assert sum(not content["reused"] for content in contents) == 1


async def test_a_worker_goes_on_in_a_store_of_the_next_version(machines: Cluster) -> None:
    with psycopg.connect(machines.url, autocommit=True) as store:
        store.execute("SET search_path TO massgen")
        store.execute("ALTER TABLE runs ADD COLUMN of_the_next_version TEXT NOT NULL DEFAULT ''")
        store.execute("INSERT INTO schema_steps (step) VALUES ('massgen/9998_next.sql')")
        machines.add_worker()
        service = machines.service()
        assert_whole(await ended(service, await begun(service, team([{"answer": "42"}]))), resumed=0)
        store.execute("INSERT INTO schema_steps (step) VALUES ('massgen/9999_after_next.sql')")
    with pytest.raises(MassgenError, match="upgrade massgen-mcp"):
        machines.engine().store.index.get("run-x")


def test_a_worker_that_starts_while_postgresql_starts_waits_for_it_and_says_so_once(home: TempHome) -> None:
    server = PostgresServer()
    try:
        elsewhere = replace(home, starts_anew=True).with_variables(MASSGEN_MCP_STORE=server.empty_store())
        server.stop()
        log = home.work / "worker.log"
        with log.open("wb") as output:
            worker = subprocess.Popen(
                [elsewhere.python, "-m", SERVER_MODULE, "worker"], env=elsewhere.environ, stdout=output, stderr=output
            )
        poll_until(lambda: "this worker keeps trying for" in log.read_text())
        server.start()
        poll_until(lambda: TAKES_RUNS in log.read_text())
        assert log.read_text().count("this worker keeps trying for") == 1
        assert worker.poll() is None
        worker.terminate()
        assert worker.wait(PATIENCE_SECONDS) == 0
    finally:
        server.remove()


async def test_a_start_for_workers_takes_every_option_of_a_run(
    machines: Cluster,
) -> None:
    home = machines.home
    options = ("--num-agents", "2", "--decide", "synthesise", "--system-message", "Be brief.", "--max-usd", "2")
    asked = ("start", "--model", "scripted/x", *options)

    started = run_command(home, COMMAND_MODULE, *asked, "--json", "q")
    assert started.returncode == 0, started.stderr
    view = await machines.service().watcher.get_run(json.loads(started.stdout)["run_id"])
    config = view.directory.read_request().config
    assert [agent.system_message for agent in config.agents] == ["Be brief."] * 2
    assert (config.orchestrator.decide, config.budget.max_usd) == ("synthesise", 2)


@pytest.mark.parametrize("option", ["--session", "--changes-of"])
def test_a_start_for_workers_refuses_what_only_this_machine_knows(machines: Cluster, option: str) -> None:
    done = run_command(machines.home, COMMAND_MODULE, "start", "--model", "scripted/x", option, "last", "q")
    assert (done.returncode, done.stdout) == (1, "")
    assert "need runs on this machine" in done.stderr


def test_a_start_without_a_store_leaves_no_files_of_a_run(home: TempHome, tmp_path: Path) -> None:
    away = home.with_variables(MASSGEN_MCP_STORE=f"postgresql://nobody@/none?host={tmp_path}")
    config = home.config("ada", agent("ada", {"answer": "42"}))
    for key in ((), ("--idempotency-key", "k")):
        done = run_command(away, SERVER_MODULE, "start", "--config", config, *key, "q")
        assert done.returncode != 0
        assert "PostgreSQL cannot be reached" in done.stderr
        assert [*away.runs] == []


def test_a_store_that_is_not_there_is_told_in_plain_words(home: TempHome, tmp_path: Path) -> None:
    empty = shared_server().url()
    for url, told in (
        ("mysql://host/db", "set it to postgresql://USER@HOST/DATABASE, or pass --store"),
        (f"postgresql://nobody@/none?host={tmp_path}", "PostgreSQL cannot be reached"),
        (empty, "update it with `massgen store upgrade`"),
    ):
        done = run_command(home.with_variables(MASSGEN_MCP_STORE=url), SERVER_MODULE, "runs")
        assert (done.returncode, done.stdout) == (5 if "mysql" not in url else 1, "")
        assert told in done.stderr


def test_a_run_of_this_machine_is_not_begun_where_nobody_would_find_it(home: TempHome) -> None:
    elsewhere = home.with_variables(MASSGEN_MCP_STORE="postgresql://db/massgen")
    done = run_command(elsewhere, COMMAND_MODULE, "--background", "--model", "scripted/x", "q")
    assert (done.returncode, done.stdout) == (2, "")
    assert "store_unavailable: PostgreSQL cannot be reached" in done.stderr
    assert json.loads(run_command(home, SERVER_MODULE, "runs", "--json").stdout)["runs"] == []
