"""A run of the command line is a run like any other: listed, controlled from elsewhere, continued after a kill."""

import json
import signal
import subprocess
from pathlib import Path

import anyio
import pytest

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.runs.engine import Control, FrozenRequest, RunFiles
from massgen_mcp.runs.host.execute import RunContext, RunHandle, execute_run
from tests.commands import run_command
from tests.harness import (
    PATIENCE_SECONDS,
    RUNNER_MODULE,
    SERVER_MODULE,
    TempHome,
    after,
    agent,
    call,
    expect_error,
    happened,
    poll_until,
    wait_until,
)
from tests.interrupted import PHASES, QUESTION, killed, log_directory, paid, started, the_only_run
from tests.teams import Observer


@pytest.mark.parametrize("phase", PHASES)
def test_a_run_of_a_killed_command_line_is_listed_and_resumed_without_paying_twice(home: TempHome, phase: str) -> None:
    directory = killed(home, PHASES[phase])
    row = the_only_run(home)
    assert (row["status"], row["question"]) == ("interrupted", QUESTION)
    before = paid(directory)
    run_id = str(row["run_id"])
    assert not home.processes(RUNNER_MODULE), "nobody continues it unasked"
    resumed = run_command(home, SERVER_MODULE, "resume", run_id)
    assert resumed.returncode == 0, resumed.stderr
    waited = run_command(home, SERVER_MODULE, "wait", run_id, "--timeout", "60")
    assert waited.returncode == 0, waited.stdout + waited.stderr
    called = paid(directory)
    assert called[: len(before)] == before
    assert len(called) == len(set(called)), "no reply was paid for twice"
    assert (directory / "final").is_dir(), "its files are where the person wanted them"
    status = directory / "status.json"  # it is written after the last event, which is what is waited for
    poll_until(lambda: json.loads(status.read_text())["coordination"]["completion_percentage"] == 100)


async def test_a_server_shows_and_resumes_a_run_of_a_killed_command_line(home: TempHome) -> None:
    killed(home, "answer_submitted")
    async with home.client() as client:
        (row,) = (await call(client, "list_runs"))["runs"]
        status = await call(client, "get_status", run_id=row["run_id"])
        assert status["status"] == "interrupted"
        assert "resume" in status["reason"]
        await call(client, "control_run", run_id=row["run_id"], action="resume")
        waited = await call(client, "wait_run", run_id=row["run_id"], timeout_seconds=40)
        assert waited["status"] == "completed"
        assert (await call(client, "get_result", run_id=row["run_id"]))["resumed"] == 1


async def test_a_run_of_a_living_command_line_is_steered_and_cancelled_from_elsewhere(home: TempHome) -> None:
    config = home.config("stuck", agent("solo", {"answer": "early"}, {"hang": True}), agent("bo", {"hang": True}))
    with started(home, config) as massgen:
        directory = log_directory(massgen)
        await wait_until(lambda: happened(directory, "answer_submitted"))
        async with home.client() as client:
            (row,) = (await call(client, "list_runs", state="running"))["runs"]
            assert (await expect_error(client, "control_run", run_id=row["run_id"], action="answer", message="x"))[
                0
            ] == "invalid_action"
            await call(client, "control_run", run_id=row["run_id"], action="steer", message="Hurry.")
            await wait_until(lambda: happened(directory, "asker_said"))
            await call(client, "control_run", run_id=row["run_id"], action="cancel")
            waited = await call(client, "wait_run", run_id=row["run_id"], timeout_seconds=30)
            assert waited["status"] == "cancelled"
        massgen.send_signal(signal.SIGCONT)
        assert massgen.wait(timeout=PATIENCE_SECONDS) == 4


def test_a_finished_run_of_the_command_line_is_never_too_old_and_goes_when_it_is_named(home: TempHome) -> None:
    with started(home, "@examples/scripted") as massgen:
        directory = log_directory(massgen)
        massgen.communicate(timeout=60)
    run_id = str(the_only_run(home)["run_id"])
    assert run_command(home, SERVER_MODULE, "result", run_id).returncode == 0
    run_command(home, SERVER_MODULE, "prune", "--older-than", "0")
    assert directory.is_dir()
    pruned = run_command(home, SERVER_MODULE, "prune", run_id)
    assert pruned.returncode == 0, pruned.stderr
    assert not directory.exists()
    assert "expired" in run_command(home, SERVER_MODULE, "result", run_id).stderr


def test_a_run_without_logs_is_in_no_list(home: TempHome) -> None:
    with started(home, "@examples/scripted", "--no-logs") as massgen:
        massgen.communicate(timeout=60)
    assert json.loads(run_command(home, SERVER_MODULE, "runs", "--json").stdout)["runs"] == []


def test_looking_at_a_run_of_a_killed_command_line_starts_no_process(home: TempHome) -> None:
    killed(home, "answer_submitted")
    run_id = str(the_only_run(home)["run_id"])
    status = run_command(home, SERVER_MODULE, "status", run_id)
    assert "interrupted" in status.stdout
    assert not list((home.path / "runners").iterdir()), "a runner was sent for that may not take the run"


def test_a_run_of_a_living_command_line_is_watched_and_not_taken_from_it(home: TempHome) -> None:
    config = home.config("stuck", agent("solo", {"answer": "early"}, {"hang": True}), agent("bo", {"hang": True}))
    with started(home, config) as massgen:
        directory = log_directory(massgen)
        poll_until(lambda: happened(directory, "answer_submitted"))
        run_id = str(the_only_run(home)["run_id"])
        watch = [home.python, "-m", SERVER_MODULE, "watch", run_id]
        with subprocess.Popen(watch, env=home.environ, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout
            assert any("1st answer: early" in line for line in watching.stdout)
            assert run_command(home, SERVER_MODULE, "resume", run_id).stdout == f"{run_id}: running\n"
            run_command(home, SERVER_MODULE, "cancel", run_id)
            assert "cancelled" in watching.stdout.read()
            assert watching.wait(timeout=PATIENCE_SECONDS) == 1
        assert massgen.wait(timeout=PATIENCE_SECONDS) == 4
    assert not happened(directory, "run_resumed")


async def test_a_cancel_stays_wanted_until_the_run_has_ended(tmp_path: Path) -> None:
    """Else a kill between the two would lose it."""
    config = config_from_data({"agents": [agent("a", {"answer": "42", **after(tmp_path / "gate")})]}, "test")
    directory = RunFiles.create(tmp_path / "run", FrozenRequest("q", config))
    handles: list[RunHandle] = []
    async with anyio.create_task_group() as tasks:
        context = RunContext({}, Observer(on_start=handles.append))
        tasks.start_soon(execute_run, directory, "run-test", context)
        await wait_until(lambda: handles)
        controls = [Control(1, "run-test", "steer", "Mind."), Control(2, "run-test", "cancel", "")]
        assert await handles[0].heed(controls) == [1]
    assert directory.event_log.read()[-1].event.type == "run_cancelled"
