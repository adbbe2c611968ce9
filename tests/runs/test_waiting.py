"""Whoever waits for a run is told when there is something new, and looks once: waiting costs nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.home import find_home
from massgen_mcp.request.build import RunRequest
from massgen_mcp.request.team import Team
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.host import foreground_run
from massgen_mcp.runs.host.foreground import run_here
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import local_engine
from massgen_mcp.runs.view import run_view
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.runs.watcher import RunWatcher
from massgen_mcp.server import waiting
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.server.tools import add_tools
from tests.commands import starting_by
from tests.faults import ROOT, can_mount
from tests.harness import (
    PATIENCE_SECONDS,
    RUNNER_MODULE,
    TempHome,
    after,
    agent,
    connections,
    end,
    happened,
    home,
    wait_until,
)
from tests.run_requests import run_request

__all__ = ["home"]

STUCK = agent("solo", {"answer": "early"}, {"hang": True})
OTHER = agent("other", {"hang": True})


@pytest.fixture(autouse=True)
def nobody_looks_without_being_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Except where no host can be had."""
    monkeypatch.setattr(run_view, "SAFETY_SECONDS", 10_000.0)
    monkeypatch.setattr(foreground_run, "CONTROL_INTERVAL", 10_000.0)


@pytest.fixture
def place(home: TempHome) -> TempHome:
    """A home whose runner stays when it has nothing to do: that it leaves is no news here."""
    return home.with_variables(MASSGEN_MCP_RUNNER_IDLE_SECONDS="1000")


@asynccontextmanager
async def service_in(home: TempHome) -> AsyncGenerator[RunService]:
    runs = RunService(local_engine(find_home(home.environ)), home.environ)
    with anyio.fail_after(2 * PATIENCE_SECONDS), starting_by(home.python):
        try:
            yield runs
        finally:
            runs.close()


def request_of(home: TempHome, *agents: dict[str, Any], **place: Any) -> RunRequest:
    config = config_from_data({"agents": list(agents)}, "test")
    return run_request("q", Team(config, "test", home.environ), **place)


async def start(runs: RunService, home: TempHome, *agents: dict[str, Any]) -> str:
    view, _ = await runs.start(await runs.prepare(request_of(home, *agents)))
    return view.row.run_id


async def test_the_end_of_a_run_is_heard_by_all_who_wait_for_it_and_for_nothing_else(place: TempHome) -> None:
    ended: list[RunView] = []
    async with service_in(place) as runs:
        run_id = await start(runs, place, agent("solo", {"answer": "late", **after(place.work / "go-on")}))

        async def wait() -> None:
            ended.append(await runs.watcher.wait(run_id, until="terminal", seconds=1000, cursor=None))

        await wait_until(lambda: happened(place.run_directory(run_id), "model_call_started"))
        (runner,) = place.processes(RUNNER_MODULE)
        before = connections(runner)
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(wait)
            await wait_until(lambda: connections(runner) >= before + 20)
            (place.work / "go-on").touch()
    assert {view.state for view in ended} == {"completed"}
    assert len(ended) == 20


async def test_every_event_reaches_who_follows_and_each_once(place: TempHome) -> None:
    seen: list[int] = []
    async with service_in(place) as runs:
        steps = [{"answer": f"answer {n}"} for n in range(3)]
        run_id = await start(runs, place, agent("solo", *steps), agent("bo", *steps))
        async with aclosing(runs.watcher.follow(run_id)) as news:
            async for _, records in news:
                seen += [record.seq for record in records]
        last = (await runs.watcher.get_run(run_id)).snapshot.seq
    assert seen == list(range(1, last + 1))


async def test_who_follows_a_run_is_shown_how_it_stands_with_all_that_has_happened_in_it(place: TempHome) -> None:
    """Also with what is written between a look at the run and the read of its events."""
    messages = [f"message {n}" for n in range(50)]
    async with service_in(place) as runs:
        run_id = await start(runs, place, STUCK, OTHER)
        async with aclosing(runs.watcher.follow(run_id)) as news:
            for message in messages:
                await runs.control(run_id, "steer", message)
                async for view, _ in news:
                    if view.snapshot.caller.messages[-1:] == (message,):
                        break


async def test_what_was_shown_of_a_run_stays_as_it_was_while_more_happens(place: TempHome) -> None:
    async with service_in(place) as runs:
        run_id = await start(runs, place, STUCK, OTHER)
        await wait_until(lambda: happened(place.run_directory(run_id), "answer_submitted"))
        earlier = await runs.watcher.get_run(run_id)
        await runs.control(run_id, "steer", "be brief")
        later = await runs.watcher.wait(run_id, until="change", seconds=1000, cursor=earlier.snapshot.seq)
        while not later.snapshot.caller.messages:
            later = await runs.watcher.wait(run_id, until="change", seconds=1000, cursor=later.snapshot.seq)
        assert (earlier.snapshot.caller.messages, later.snapshot.caller.messages) == ((), ("be brief",))
        await runs.control(run_id, "cancel")


async def test_a_queued_run_that_somebody_cancels_is_no_longer_waited_for(place: TempHome) -> None:
    place = place.with_variables(MASSGEN_MCP_MAX_RUNNING="1")
    async with service_in(place) as runs, service_in(place) as others:
        first = await start(runs, place, STUCK, OTHER)
        await wait_until(lambda: happened(place.run_directory(first), "answer_submitted"))
        second = await start(runs, place, STUCK, OTHER)
        ended: list[RunView] = []

        async def wait() -> None:
            ended.append(await runs.watcher.wait(second, until="terminal", seconds=1000, cursor=None))

        (runner,) = place.processes(RUNNER_MODULE)
        before = connections(runner)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await wait_until(lambda: connections(runner) > before)
            await others.control(second, "cancel")
        assert ended[0].state == "cancelled"
        await runs.control(first, "cancel")
        assert (await runs.watcher.wait(first, until="terminal", seconds=1000, cursor=None)).state == "cancelled"


async def test_a_client_that_wants_no_progress_waits_without_a_look_until_there_is_news(
    place: TempHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does want it is looked for again and again, here a hundred times a second."""
    monkeypatch.setattr(waiting, "PROGRESS_SECONDS", 0.01)
    looks: list[str] = []
    look = RunWatcher.get_run

    async def counted(watcher: RunWatcher, run_id: str) -> RunView:
        looks.append(run_id)
        return await look(watcher, run_id)

    async def not_read(progress: float, total: float | None, message: str | None) -> None:
        """Nobody cares what it says."""

    monkeypatch.setattr(RunWatcher, "get_run", counted)
    async with service_in(place) as runs:
        server = MassgenServer()
        add_tools(server, runs)
        async with Client(server, mode="legacy") as client:
            counts: list[int] = []
            for on_progress in (None, not_read):
                run_id = await start(runs, place, agent("solo", {"answer": "late", "delay_seconds": 2}))
                await wait_until(partial(happened, place.run_directory(run_id), "model_call_started"))
                arguments = {"run_id": run_id, "timeout_seconds": 50}
                waited = await client.call_tool("wait_run", arguments, progress_callback=on_progress)
                assert waited.structured_content
                assert waited.structured_content["status"] == "completed"
                counts.append(looks.count(run_id))
    quiet, eager = counts
    assert quiet < 10
    assert eager > 3 * quiet


async def test_a_run_in_the_foreground_hears_at_once_what_is_wanted_of_it(place: TempHome, tmp_path: Path) -> None:
    states: list[RunState] = []
    async with service_in(place) as runs:
        with run_here(request_of(place, STUCK, OTHER, project=tmp_path, listed=True)) as run:

            async def execute() -> None:
                states.append(await run.execute())

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(execute)
                await wait_until(lambda: happened(run.directory.path, "answer_submitted"))
                watched = await runs.watcher.wait(run.run_id, until="change", seconds=1000, cursor=1)
                assert watched.state == "running"
                await runs.control(run.run_id, "cancel")
                assert (
                    await runs.watcher.wait(run.run_id, until="terminal", seconds=1000, cursor=None)
                ).state == "cancelled"
    assert states[0].state == "cancelled"


async def test_a_hundred_who_wait_when_the_runner_is_killed_see_the_run_go_on(place: TempHome) -> None:
    ended: list[RunView] = []
    async with service_in(place) as runs:
        run_id = await start(runs, place, agent("solo", {"answer": "first", **after(place.work / "go-on")}))

        async def wait() -> None:
            ended.append(await runs.watcher.wait(run_id, until="terminal", seconds=1000, cursor=None))

        await wait_until(lambda: happened(place.run_directory(run_id), "model_call_started"))
        (runner,) = place.processes(RUNNER_MODULE)
        async with anyio.create_task_group() as tasks:
            for _ in range(100):
                tasks.start_soon(wait)
            await wait_until(lambda: connections(runner) > 100)
            end(runner, signal.SIGKILL)
            (place.work / "go-on").touch()
    assert {(view.state, view.snapshot.resumed) for view in ended} == {("completed", 1)}
    assert len(ended) == 100


def test_where_no_socket_can_be_made_runs_end_and_are_cancelled_all_the_same(tmp_path: Path) -> None:
    if not can_mount():
        pytest.skip(
            "a directory that is full for nobody else takes a file system of its own, which this user may not mount"
        )
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", "--mount", *user, sys.executable, "-W", "error", "-m", "tests.runs.no_sockets", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "outlived" in done.stdout


async def test_a_socket_that_somebody_removed_costs_time_and_no_event(place: TempHome) -> None:
    """As when the runtime directory goes with the end of a login."""
    async with service_in(place) as runs:
        run_id = await start(runs, place, agent("solo", {"answer": "late", **after(place.work / "go-on")}))
        await wait_until(lambda: happened(place.run_directory(run_id), "model_call_started"))
        (address,) = (place.path / "runners").glob("*.news")
        Path(address.read_text()).unlink()
        (place.work / "go-on").touch()
        ended = await runs.watcher.wait(run_id, until="terminal", seconds=1000, cursor=None)
    assert ended.state == "completed"


async def test_a_wait_that_is_told_to_stop_returns_with_the_run_as_it_is(place: TempHome) -> None:
    async with service_in(place) as runs:
        run_id = await start(runs, place, STUCK, OTHER)
        waited: list[RunView] = []

        async def wait() -> None:
            waited.append(await runs.watcher.wait(run_id, until="terminal", seconds=1000, cursor=None))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await wait_until(lambda: happened(place.run_directory(run_id), "answer_submitted"))
            runs.watcher.stop_waiting()
        assert waited[0].state == "running"
        await runs.control(run_id, "cancel")
