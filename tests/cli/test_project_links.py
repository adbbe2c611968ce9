"""A project that came from a stranger must not decide where we write: links in its `.massgen` lead nowhere."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome
from tests.typist import typist

PLACES = [".massgen", ".massgen/massgen_logs"]


def linked(home: TempHome, place: str) -> Path:
    """A directory outside of the project, to which this place of the project is a link."""
    outside = home.work.parent / "somebody"
    outside.mkdir()
    link = home.work / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)
    return outside


@pytest.mark.parametrize("place", PLACES)
def test_a_run_writes_nothing_through_a_link_out_of_its_project(home: TempHome, place: str) -> None:
    outside = linked(home, place)
    done = run_command(home, COMMAND_MODULE, "--automation", "--config", "@examples/scripted", "What is it?")
    assert done.returncode == 1
    assert "unsafe_path" in done.stderr
    assert "points outside" in done.stderr
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("place", [".massgen", ".massgen/sessions"])
def test_a_chat_writes_nothing_through_a_link_out_of_its_project(home: TempHome, place: str) -> None:
    outside = linked(home, place)
    done = run_command(home, COMMAND_MODULE, "--config", "@examples/scripted", "--session-id", "session_1")
    assert done.returncode == 1
    assert "unsafe_path" in done.stderr
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("place", PLACES)
def test_a_question_in_a_chat_writes_nothing_through_a_link_out_of_its_project(home: TempHome, place: str) -> None:
    outside = linked(home, place)
    command = [home.python, "-m", COMMAND_MODULE, "--config", "@examples/scripted"]
    asked = "What is it?\n"
    done = subprocess.run(
        command, cwd=home.work, env=home.environ, input=asked, capture_output=True, text=True, check=False, timeout=60
    )
    assert ", so massgen writes nothing there" in done.stdout + done.stderr
    assert list(outside.iterdir()) == []


def test_what_is_typed_into_a_chat_is_written_nowhere_else(home: TempHome) -> None:
    shell = home.work.parent / ".bashrc"
    shell.write_text("honest\n")
    (home.work / ".massgen").mkdir()
    (home.work / ".massgen" / "chat_history").symlink_to(shell)
    command = [sys.executable, "-m", COMMAND_MODULE, "--config", "@examples/scripted"]
    with typist(command, cwd=home.work, environ={**home.environ, "TERM": "xterm", "CI": ""}) as person:
        person.expect("unsafe_path")
        assert person.leave() == 1
    assert shell.read_text() == "honest\n"
