"""A run outlives its terminal: it goes on when that is closed or let go, and is there to come back to."""

import json
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.commands import run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, agent, end, events_of, happened, poll_until
from tests.interrupted import QUESTION, gate, held_team, log_directory, paid, started, the_only_run
from tests.terminal import Terminal, only_child, terminal

MOMENTS = ["run_started", "model_call_started", "answer_submitted", "vote_cast", "presentation_started", "text_delta"]


def directory_of(home: TempHome) -> Path:
    logs = home.work / ".massgen" / "massgen_logs"
    poll_until(lambda: logs.exists() and any(logs.iterdir()))
    return only_child(logs)


def closed(window: Terminal) -> None:
    """As when the window or the connection is gone. Its command goes on only as long as the caller keeps `window`."""
    window.child.ptyproc.fileobj.close()


def ended_whole(home: TempHome) -> None:
    """It went on to its end by itself, and nothing was paid for twice."""
    directory = directory_of(home)
    poll_until(lambda: happened(directory, "run_completed"))
    begun = [event["call_id"] for event in events_of(directory) if event["type"] == "model_call_started"]
    assert sorted(paid(directory)) == sorted(begun) == sorted(set(begun))
    poll_until(lambda: not home.processes(COMMAND_MODULE))
    assert the_only_run(home)["status"] == "completed"


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_goes_on_when_its_terminal_is_closed(home: TempHome, moment: str) -> None:
    team = held_team(home, moment)
    window = Terminal([sys.executable, "-m", COMMAND_MODULE, "--config", team, QUESTION], home, 100, 30)
    directory = directory_of(home)
    poll_until(lambda: (window.pump(0.02), happened(directory, moment))[1])
    closed(window)
    gate(home).touch()
    ended_whole(home)


def test_who_comes_back_is_told_of_a_run_that_goes_on_and_once_of_its_end(home: TempHome) -> None:
    config = home.config("hanging", agent("ada", {"answer": "the first"}), agent("bo", {"hang": True}))
    with started(home, config) as massgen:
        directory = log_directory(massgen)
        poll_until(lambda: happened(directory, "answer_submitted"))
        massgen.send_signal(signal.SIGHUP)
        with terminal(home, "--config", "@examples/scripted", "Another?", size=(120, 40)) as window:
            window.wait_for(f'The run "{QUESTION}" continues in the background', "massgen watch run-")
            window.leave()
        run_id = next(file.name for file in (home.work / ".massgen" / "left_runs").iterdir())
        assert run_command(home, SERVER_MODULE, "cancel", run_id).returncode == 0
        massgen.communicate()
    assert happened(directory, "run_cancelled")
    for told in (True, False):
        with terminal(home, "--config", "@examples/scripted", "Another?", size=(120, 40)) as window:
            window.leave()
            assert ("has since ended (cancelled; $0.00 for 2 calls, " in window.everything) is told


def test_a_conversation_tells_of_a_turn_that_was_left_and_says_before_how_to_come_back(home: TempHome) -> None:
    team = held_team(home, "run_started")
    window = Terminal([sys.executable, "-m", COMMAND_MODULE, "--config", team], home, 100, 40)
    window.say(QUESTION)
    window.wait_for("To follow it: massgen watch run-", "Generating")
    closed(window)
    poll_until((home.work / ".massgen" / "left_runs").exists)
    with terminal(home, "--config", team, size=(120, 40)) as another:
        assert f'The run "{QUESTION}" continues in the background' in another.wait_for("You: ")
    gate(home).touch()
    ended_whole(home)


def test_a_run_that_was_left_with_a_question_open_waits_for_its_answer(home: TempHome) -> None:
    ask = {"call": "ask_the_asker", "arguments": {"question": "Which country?"}}
    config = home.config("asker", agent("ada", ask, {"answer": "done"}), orchestrator={"allow_questions": True})
    window = Terminal([sys.executable, "-m", COMMAND_MODULE, "--config", config, QUESTION], home, 100, 30)
    window.wait_for("Your answer: ")
    closed(window)
    poll_until((home.work / ".massgen" / "left_runs").exists)
    with terminal(home, "--config", "@examples/scripted", size=(120, 40)) as another:
        assert f'The run "{QUESTION}" is waiting for your answer; follow it with: massgen' in another.wait_for("You: ")
    run_id = str(the_only_run(home)["run_id"])
    assert run_command(home, SERVER_MODULE, "answer", run_id, "Chad").returncode == 0
    ended_whole(home)


def test_a_run_that_keeps_nothing_ends_with_its_terminal_and_says_so_first(home: TempHome) -> None:
    with terminal(home, "--no-logs", "--config", held_team(home, "run_started"), QUESTION, size=(100, 30)) as window:
        window.wait_for("The run ends if you close this terminal, because --no-logs keeps no record of it.")
        window.wait_for("Generating")
        end(window.child.pid, signal.SIGHUP)
        assert window.leave() == 4


SHELL = """
import os, signal, sys
pid = os.posix_spawn(sys.executable, [sys.executable, "-m", *sys.argv[1:]], os.environ)
_, status = os.waitpid(pid, os.WUNTRACED)
print("shell: stopped" if os.WIFSTOPPED(status) else f"shell: ended {status}", flush=True)
input("prompt> ")
"""
"""As a shell waits for its job."""


def test_the_key_d_gives_the_terminal_back_and_the_run_goes_on(home: TempHome) -> None:
    arguments = ["-c", SHELL, COMMAND_MODULE, "--config", held_team(home, "run_started"), QUESTION]
    window = Terminal([sys.executable, *arguments], home, 100, 40)
    window.wait_for("To follow it: massgen watch run-", "Generating")
    window.type("d")
    text = window.wait_for("shell: stopped", "prompt>")
    assert re.search(r"The run continues in the background: massgen watch run-\w+", text), text
    gate(home).touch()
    window.type("\r")
    ended_whole(home)
    assert "Complete" not in text.partition("prompt>")[2], "it wrote on a terminal that was given back"


def test_a_run_may_begin_in_the_background_and_is_applied_and_looked_at_by_its_id(home: TempHome) -> None:
    begun = run_command(home, COMMAND_MODULE, "--background", "--config", "@examples/scripted", QUESTION)
    assert begun.returncode == 0, begun.stderr
    run_id = begun.stdout.strip()
    assert re.fullmatch(r"run-\w+", run_id), begun.stdout
    assert f"massgen watch {run_id}" in begun.stderr
    waited = run_command(home, SERVER_MODULE, "wait", run_id, "--json")
    assert json.loads(waited.stdout)["status"] == "completed"


def test_a_verb_that_people_try_names_the_command_that_asks(home: TempHome) -> None:
    refused = run_command(home, SERVER_MODULE, "run", "hello there")
    assert refused.returncode == 64
    assert 'to start a run: massgen "your question"' in refused.stderr


@pytest.mark.parametrize("option", [["--no-logs"], ["--automation"], ["--output-file", "x"]])
def test_a_run_in_the_background_prints_an_id_and_nothing_else(home: TempHome, option: list[str]) -> None:
    refused = run_command(home, COMMAND_MODULE, "--background", *option, "q")
    assert refused.returncode == 1
    assert "start prints only an ID" in refused.stderr
