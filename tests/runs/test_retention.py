"""How long runs are kept: workspaces go first, results later, and what was a run says so; nothing young goes at all."""

import re
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from massgen_mcp.cli.manual import SURROUNDINGS
from massgen_mcp.config.loader import load_config
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import DAY, HOUR, Home
from massgen_mcp.runs.patches.applying import ApplyRequest
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import local_engine
from massgen_mcp.runs.store.retention import MOST_CREDIT, ClockReadings, Pruned, passed, prune
from massgen_mcp.runs.view.run_view import RunView
from tests.commands import starting_by
from tests.harness import RUNNER_MODULE, TempHome, agent, call, expect_error, wait_until
from tests.run_requests import asked

WRITE = {"call": "write_file", "arguments": {"path": "note.txt", "content": "x" * 5000}}


@asynccontextmanager
async def managed(home: TempHome) -> AsyncGenerator[RunService]:
    service = RunService(local_engine(Home(home.path, 0.5)), home.environ)
    try:
        with starting_by(home.python):
            yield service
    finally:
        service.close()


async def ended_run(home: TempHome, service: RunService, key: str | None = None) -> RunView:
    """A run with files, whose runner has left."""
    config = load_config(home.config("writer", agent("solo", WRITE, {"answer": "kept"})), environ={})
    view, _ = await service.start(await service.prepare(asked("q", config, source="writer", key=key)))
    view = await service.watcher.wait(view.row.run_id, until="terminal", seconds=30, cursor=None)
    assert view.state == "completed"
    await wait_until(lambda: not home.processes(RUNNER_MODULE))
    return view


def pruned_after(home: TempHome, seconds: float, *, boot: str = "b", dry_run: bool = False) -> Pruned:
    """What is pruned when a machine's uptime is so many seconds."""
    engine = local_engine(Home(home.path))
    try:
        return prune(engine, dry_run=dry_run, now=ClockReadings(1e9 + seconds, boot, seconds))
    finally:
        engine.close()


async def test_workspaces_stay_as_long_as_a_patch_waits_to_be_applied(home: TempHome) -> None:
    project = home.work / "project"
    project.mkdir()
    (project / "a.txt").write_text("before\n")
    change = {"call": "write_file", "arguments": {"path": "project/a.txt", "content": "after\n"}}
    paths = [{"path": str(project), "permission": "write"}]
    name = home.config("writer", agent("solo", change, {"answer": "changed"}), orchestrator={"context_paths": paths})
    async with managed(home) as service:
        view, _ = await service.start(await service.prepare(asked("q", load_config(name, environ={}), source="writer")))
        run_id = view.row.run_id
        view = await service.watcher.wait(run_id, until="terminal", seconds=30, cursor=None)
        await wait_until(lambda: not home.processes(RUNNER_MODULE))
        assert pruned_after(home, 100).removed == []
        assert pruned_after(home, 100 + 2 * DAY).removed == []
        assert (await service.applier.apply(run_id, ApplyRequest(dry_run=False))).state == "applied"
        assert (project / "a.txt").read_text() == "after\n"
        assert [each.what for each in pruned_after(home, 100 + 2 * DAY).removed] == ["workspaces"]
        best = (await service.watcher.get_run(run_id)).snapshot.best_changes
        assert best is not None
        assert best.patch is not None
        assert (view.directory.path / best.patch).is_file(), "the patch stays as long as the result"
        assert [each.what for each in pruned_after(home, 100 + 7 * DAY).removed] == ["results"]


async def test_workspaces_go_after_a_day_results_after_a_week_and_the_row_stays(home: TempHome) -> None:
    async with managed(home) as service:
        view = await ended_run(home, service, key="k")
        run_id, directory = view.row.run_id, view.directory.path
        snapshots = list(directory.glob("turn_*/attempt_*/*/*/workspace"))
        assert snapshots
        assert (directory / "workspaces").is_dir()
        assert pruned_after(home, 100).removed == []
        assert pruned_after(home, 100 + DAY - 1).removed == []

        (removed,) = pruned_after(home, 100 + DAY).removed
        assert (removed.run_id, removed.what) == (run_id, "workspaces")
        assert removed.bytes >= 10_000
        assert not (directory / "workspaces").exists()
        assert not any(path.exists() for path in snapshots)
        assert (await service.watcher.get_run(run_id)).snapshot.final_answer == "kept"
        assert list(directory.glob("final/*/workspace/note.txt")), "the winner's files belong to the result"

        assert pruned_after(home, 100 + 7 * DAY - 1).removed == []
        assert [(each.run_id, each.what) for each in pruned_after(home, 100 + 7 * DAY).removed] == [(run_id, "results")]
        assert not directory.exists()
        with pytest.raises(MassgenError) as caught:
            await service.watcher.get_run(run_id)
        assert caught.value.code == "expired"
        assert "completed" in str(caught.value)
        (row,) = [listed.row for listed in await service.watcher.list_runs(limit=9)]
        assert (row.run_id, row.state, row.outcome, row.question, row.expired) == (
            run_id,
            "completed",
            "single",
            "",
            True,
        )
        assert row.ended
        again = await ended_run(home, service, key="k")
        assert again.row.run_id != run_id, "the key of an expired run is free"


async def test_a_dry_run_says_what_would_go_and_leaves_it(home: TempHome) -> None:
    async with managed(home) as service:
        view = await ended_run(home, service)
        told = prune(service.access.whole_engine, dry_run=True, older_than=0)
        assert [(each.run_id, each.what) for each in told.removed] == [(view.row.run_id, "results")]
        assert told.bytes > 0
        assert (await service.watcher.get_run(view.row.run_id)).snapshot.final_answer == "kept"
        done = prune(service.access.whole_engine, older_than=0)
        assert (done.removed, done.failed) == (told.removed, [])
        assert not view.directory.path.exists()


async def test_a_run_that_goes_on_is_never_pruned(home: TempHome) -> None:
    async with managed(home) as service:
        config = load_config(home.config("stuck", agent("solo", {"hang": True})), environ={})
        view, _ = await service.start(await service.prepare(asked("q", config, source="stuck")))
        await wait_until((view.directory.path / "events.jsonl").exists)
        assert (prune(service.access.whole_engine, older_than=0)).removed == []
        await service.control(view.row.run_id, "cancel")
        assert (
            await service.watcher.wait(view.row.run_id, until="terminal", seconds=20, cursor=None)
        ).state == "cancelled"


async def test_a_clock_that_jumps_a_year_ahead_and_back_takes_no_young_result(home: TempHome) -> None:
    async with managed(home) as service:
        view = await ended_run(home, service)
        engine, year = local_engine(Home(home.path)), 365 * DAY
        for wall in (0.0, year, 0.0, year, -year, 0.0):
            for boot in ("same", "same"):
                told = prune(engine, now=ClockReadings(1e9 + wall, boot, 50.0))
                assert told.removed == []
        told = prune(engine, now=ClockReadings(1e9 + year, "another boot", 10.0))
        assert [each.what for each in told.removed] in ([], ["workspaces"])
        engine.close()
        assert (await service.watcher.get_run(view.row.run_id)).snapshot.final_answer == "kept"


moments = st.builds(
    ClockReadings, wall=st.floats(-1e10, 1e10), boot=st.sampled_from(["", "a", "b"]), uptime=st.floats(0, 1e9)
)


@given(last=moments, now=moments)
def test_no_pair_of_clocks_makes_time_run_backwards_or_wildly_ahead(last: ClockReadings, now: ClockReadings) -> None:
    seconds = passed(last, now)
    within_a_boot = last.boot and last.boot == now.boot
    assert 0 <= seconds <= (max(0.0, now.uptime - last.uptime) if within_a_boot else MOST_CREDIT)


async def test_a_pruning_that_was_killed_is_finished_by_the_next_one(home: TempHome) -> None:
    async with managed(home) as service:
        view = await ended_run(home, service)
        store = local_engine(Home(home.path)).store
        assert store.retention.set_kept(view.row, "losing_results")  # and here the process was killed
        (view.directory.path / "config.json").unlink()
        with pytest.raises(MassgenError) as caught:
            await service.watcher.get_run(view.row.run_id)
        assert caught.value.code == "expired"
        assert not store.retention.set_kept(view.row, "losing_results"), (
            "nobody else may begin it again from an old look"
        )
        store.database.close()
        assert [each.what for each in pruned_after(home, 10).removed] == ["results"]
        assert not view.directory.path.exists()


async def test_a_directory_without_a_run_goes_unless_it_is_being_made_or_was_run(home: TempHome) -> None:
    async with managed(home) as service:
        await ended_run(home, service)
        runs = Home(home.path).runs
        leftover, ran, foreign = runs / f"run-{'a' * 26}", runs / f"run-{'b' * 26}", runs / "my-notes"
        for directory in (leftover, ran, foreign):
            directory.mkdir()
            (directory / "config.json").write_text("{}")
        (leftover / "events.jsonl").write_text("")
        (ran / "events.jsonl").write_text("{}\n")
        with local_engine(Home(home.path)).files.making():
            assert pruned_after(home, 10, dry_run=True).removed == []
            assert pruned_after(home, 10).removed == []
        assert [(each.run_id, each.what) for each in pruned_after(home, 10).removed] == [(leftover.name, "leftover")]
        assert [path.exists() for path in (leftover, ran, foreign)] == [False, True, True]


async def test_a_runner_prunes_by_itself_and_an_expired_run_says_so_to_a_client(home: TempHome) -> None:
    soon = home.with_variables(MASSGEN_MCP_KEEP_RESULTS_DAYS="0")
    async with soon.client() as client:
        first = await call(client, "start_run", question="q", models=["scripted/x"], wait_seconds=30)
        await wait_until(lambda: not home.processes(RUNNER_MODULE))
        await call(client, "start_run", question="q", models=["scripted/x"], wait_seconds=30)
        await wait_until(lambda: not home.run_directory(first["run_id"]).exists())
        for tool in ("get_result", "get_status", "wait_run"):
            assert (await expect_error(client, tool, run_id=first["run_id"]))[0] == "expired"
        rows = {row["run_id"]: row for row in (await call(client, "list_runs"))["runs"]}
        assert (rows[first["run_id"]]["expired"], rows[first["run_id"]]["status"]) == (True, "completed")


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "many"])
def test_a_limit_that_is_no_number_is_an_error_at_the_start(home: TempHome, value: str) -> None:

    environ = home.with_variables(MASSGEN_MCP_KEEP_WORKSPACES_HOURS=value).environ
    command = [home.python, "-m", "massgen_mcp.cli.massgen_mcp.main"]
    done = subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "MASSGEN_MCP_KEEP_WORKSPACES_HOURS" in done.stderr


def test_the_usual_limits_are_those_of_the_documentation() -> None:
    limits = Home(Path()).limits
    assert (limits.workspaces_seconds, limits.results_seconds) == (24 * HOUR, 7 * DAY)
    told = " ".join(SURROUNDINGS.split())
    for variable, value in (
        ("MASSGEN_MCP_MAX_RUNNING", limits.running),
        ("MASSGEN_MCP_MAX_QUEUED", limits.queued),
        ("MASSGEN_MCP_KEEP_RESULTS_DAYS", limits.results_seconds / DAY),
        ("MASSGEN_MCP_KEEP_WORKSPACES_HOURS", limits.workspaces_seconds / HOUR),
    ):
        assert re.search(rf"{variable} [^()]*\({value:g}\)", told), variable
