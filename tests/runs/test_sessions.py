"""A session is the same at every door: its turns are runs of the store."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import massgen_mcp as massgen
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.runs.host.foreground import run_here
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, agent, call, expect_error
from tests.run_requests import asked
from tests.terminal import newest, only_child


@pytest.fixture
def here(home: TempHome, monkeypatch: pytest.MonkeyPatch) -> TempHome:
    """The home is this process's, too, but not that of the process that serves `run_command` to every test."""
    run_command(home, COMMAND_MODULE, "--version")
    monkeypatch.setenv("MASSGEN_MCP_HOME", str(home.path))
    monkeypatch.chdir(home.work)
    return home


def team() -> dict[str, Any]:
    return {"agents": [agent("ada")]}


def ask(home: TempHome, session_id: str, question: str) -> list[str]:
    """One turn of the command line; what its team was told of the earlier ones."""
    config = home.config("solo", *team()["agents"])
    done = run_command(home, COMMAND_MODULE, "--automation", "--config", config, "--session-id", session_id, question)
    assert done.returncode == 0, done.stderr
    return told(newest(home.work / ".massgen" / "massgen_logs"))


def told(run: Path) -> list[str]:
    history = json.loads((run / "config.json").read_text())["history"]
    assert all(turn["answer"].endswith(turn["question"]) for turn in history)
    return [turn["question"] for turn in history]


async def test_a_session_goes_on_at_every_door(here: TempHome) -> None:
    first = await massgen.run("One?", config_dict=team(), enable_logging=True)
    session_id = first["session_id"]
    assert ask(here, session_id, "Two?") == ["One?"]
    config = here.config("solo", *team()["agents"])
    async with here.client() as client:
        third = await call(
            client, "start_run", question="Three?", config=config, session_id=session_id, wait_seconds=40
        )
        rows = (await call(client, "list_runs", session_id=session_id))["runs"]
    assert told(here.path / "runs" / third["run_id"]) == ["One?", "Two?"]
    assert [row["question"] for row in rows] == ["Three?", "Two?", "One?"]
    fourth = await massgen.run("Four?", config_dict=team(), enable_logging=True, session_id=session_id)
    assert told(Path(fourth["log_directory"])) == ["One?", "Two?", "Three?"]
    listed = run_command(here, COMMAND_MODULE, "--list-sessions").stdout
    assert f"{session_id}  " in listed
    assert "  4 turns  One?" in listed


async def test_any_run_begins_a_conversation_that_is_called_by_its_id(here: TempHome) -> None:
    config = here.config("solo", *team()["agents"])
    stuck = here.config("stuck", agent("ada", {"hang": True}))
    async with here.client() as client:
        first = await call(client, "start_run", question="One?", config=config, wait_seconds=40)
        turn = {"config": config, "session_id": first["run_id"], "wait_seconds": 40}
        second = await call(client, "start_run", question="Two?", **turn)
        third = await call(client, "start_run", question="Three?", **turn)
        going = await call(client, "start_run", question="How long?", config=stuck)
        turn = {"config": config, "session_id": going["run_id"]}
        assert (await expect_error(client, "start_run", question="And then?", **turn))[0] == "session_busy"
    assert told(here.path / "runs" / second["run_id"]) == ["One?"]
    assert told(here.path / "runs" / third["run_id"]) == ["One?", "Two?"]


async def test_turns_that_are_not_logged_are_known_to_this_process_alone(here: TempHome) -> None:
    history = [{"role": "user", "content": "Zero?"}, {"role": "assistant", "content": "Said of Zero?"}]
    first = await massgen.run("One?", config_dict=team(), enable_logging=True, conversation_history=history)
    session_id = first["session_id"]
    assert ask(here, session_id, "Two?") == ["Zero?", "One?"], "the session begins with what was said before"
    await massgen.run("Three?", config_dict=team(), session_id=session_id)
    fourth = await massgen.run("Four?", config_dict=team(), enable_logging=True, session_id=session_id)
    assert told(Path(fourth["log_directory"])) == ["Zero?", "One?", "Two?", "Three?"]
    assert ask(here, session_id, "Five?") == ["Zero?", "One?", "Two?", "Four?"]


def test_a_session_of_another_machine_goes_on_from_what_the_project_keeps(home: TempHome) -> None:
    config = home.config("solo", *team()["agents"])
    chat = [sys.executable, "-m", COMMAND_MODULE, "--config", config]
    subprocess.run(chat, cwd=home.work, env=home.environ, input=b"One?\n", capture_output=True, check=True)
    shutil.rmtree(home.path)
    session = only_child(home.work / ".massgen" / "sessions")
    assert ask(home, session.name, "Two?") == ["One?"]
    assert ask(home, session.name, "Three?") == ["One?", "Two?"]
    assert sorted(path.name for path in session.glob("turn_*")) == ["turn_1", "turn_2", "turn_3"]


def test_conversations_that_begin_in_one_second_in_two_projects_are_two_sessions(here: TempHome) -> None:
    request = asked("Who?", config_from_data(team(), "test", environ={}), environ=os.environ)
    begun = replace(request.given, begins_session=True, listed=True)
    with ExitStack() as both:
        projects = [here.work / "one", here.work / "two"]
        given = [replace(begun, project=project) for project in projects]
        runs = [both.enter_context(run_here(replace(request, given=one))) for one in given]
    assert all(run.listed and run.session for run in runs)
    assert len({run.session.session_id for run in runs if run.session}) == 2
    assert [len([*(project / ".massgen" / "sessions").iterdir()]) for project in projects] == [1, 1]
