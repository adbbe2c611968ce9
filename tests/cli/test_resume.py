"""A killed `massgen` is continued by `massgen`, with `/resume` or `--resume`; nothing is paid twice."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.commands import run_command
from tests.harness import (
    COMMAND_MODULE,
    RUNNER_MODULE,
    SERVER_MODULE,
    TempHome,
    after,
    agent,
    events_of,
    happened,
    poll_until,
)
from tests.interrupted import (
    PHASES,
    QUESTION,
    gate,
    held_team,
    kill,
    killed,
    log_directory,
    paid,
    started,
    the_only_run,
)
from tests.terminal import newest, only_child, terminal

CONFIG_ERROR, INTERRUPTED = 1, 4
HANG = {"hang": True}
READY = "/ for commands, @ for files"
OFFER = f'The run "{QUESTION}" was interrupted; '


def massgen(home: TempHome, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_command(home, COMMAND_MODULE, *arguments)


def waiting_team(home: TempHome) -> str:
    return home.config("waiting", agent("ada", {"answer": "Forty-two."}), agent("bo", HANG))


def sessions_of(home: TempHome) -> Path:
    return home.work / ".massgen" / "sessions"


def turn_of(session: Path, number: int) -> dict[str, object]:
    return json.loads((session / f"turn_{number}" / "metadata.json").read_text())


def killed_chat(home: TempHome, config: str, kind: str) -> Path:
    """The directory of a turn's run whose chat was killed as soon as an event of this kind had happened."""
    logs = home.work / ".massgen" / "massgen_logs"
    with terminal(home, "--config", config) as window:
        window.say(QUESTION)
        poll_until(lambda: logs.is_dir() and happened(newest(logs), kind))
        window.kill()
    gate(home).touch()
    return newest(logs)


def assert_paid_once(directory: Path, before: list[str]) -> None:
    called = paid(directory)
    assert called[: len(before)] == before, "what was paid for was thrown away"
    assert len(called) == len(set(called)), "a reply was paid for twice"


def umask() -> int:
    """That of this process, which the commands inherit."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


# -- going on ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", PHASES)
def test_resume_goes_on_with_a_killed_run_and_tells_it_as_a_new_one(home: TempHome, phase: str) -> None:
    directory = killed(home, PHASES[phase])
    before = paid(directory)
    output = home.work / "answer.md"
    done = massgen(
        home, "--automation", "--resume", str(the_only_run(home)["run_id"])[:12], "--output-file", str(output)
    )
    assert done.returncode == 0, done.stderr
    assert_paid_once(directory, before)
    lines = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert lines[:4] == ["LOG_DIR", "STATUS", "AGENTS", "QUESTION"]
    assert lines[5:] == [
        *(
            "TEAM",
            "WINNER",
            "OUTCOME",
            "DURATION",
            "COST",
            "ANSWER_FILE",
            "REPORT",
            "ANSWER_PREVIEW",
            "OUTPUT_FILE",
            "COMPLETED",
        )
    ]
    assert done.stdout.startswith(f"LOG_DIR: {directory}\n")
    assert f"\nTEAM: {home.work / '.config' / 'massgen' / 'slow.yaml'}; no hosts" in done.stdout
    assert output.read_text() == next((directory / "final").glob("*/answer.txt")).read_text()
    assert output.stat().st_mode & 0o077 == 0o077 & 0o666 & ~umask(), "a person's files are as open as the person wants"
    assert the_only_run(home)["status"] == "completed"
    assert not home.processes(RUNNER_MODULE), "it was continued by the command itself"


@pytest.mark.parametrize("phase", PHASES)
def test_the_chat_goes_on_with_a_killed_turn_which_counts_from_then_on(home: TempHome, phase: str) -> None:
    config = held_team(home, PHASES[phase])
    directory = killed_chat(home, config, PHASES[phase])
    before = paid(directory)
    session = only_child(sessions_of(home))
    assert not [*session.iterdir()], "a turn is written down when it has ended"
    gate(home).unlink()  # the live view is gone with the end of the turn
    with terminal(home, "--config", config) as window:
        window.wait_for(f"{OFFER}/resume continues it.", READY)
        window.say("/resume")
        window.wait_for("│ 1 ada ", "│ 2 bo ")
        gate(home).touch()
        window.wait_for("word word", "★ ada · ", READY)
        window.say("/status")
        window.wait_for(session.name, "Conversation 1 turn", f"{QUESTION} [completed]", READY)
        window.say("r")
        window.wait_for("End: completed (", READY)
        window.say("/resume")
        window.wait_for("this directory has no interrupted run", READY)
        window.say("/q")
        assert window.leave() == 0
        assert f"Continuing {session.name}: 0 turns so far." in window.everything
    assert_paid_once(directory, before)
    assert turn_of(session, 1)["state"] == "completed"
    assert (session / "turn_1" / "answer.txt").read_text().startswith("word word")
    assert f"You: {QUESTION}" in (session / "SESSION_SUMMARY.txt").read_text()
    assert the_only_run(home)["status"] == "completed"
    assert not home.processes(RUNNER_MODULE), "it was continued by the chat itself"


def test_a_conversation_that_goes_on_elsewhere_stays_as_it_is_and_the_next_turn_knows_the_continued_one(
    home: TempHome,
) -> None:
    late = {"answer": "Forty-two.", **after(gate(home))}
    config = home.config("duo", agent("ada", late), agent("bo", {"answer": "So far."}))
    killed_chat(home, config, "answer_submitted")
    session = only_child(sessions_of(home))
    run_id = str(the_only_run(home)["run_id"])
    home.config("duo", agent("ada"), agent("bo"))
    chat = [home.python, "-m", COMMAND_MODULE, "--config", config]
    questions = f"Another one?\n/resume {run_id}\nAnd then?\n"
    done = subprocess.run(
        chat, cwd=home.work, env=home.environ, input=questions, text=True, capture_output=True, check=True
    )
    assert "★ ada · " in done.stdout.partition(f"You: /resume {run_id}")[2]
    assert turn_of(session, 1)["state"] == "completed"
    (other,) = [path for path in sessions_of(home).iterdir() if path != session]
    assert [turn_of(other, number)["task"] for number in (1, 2)] == ["Another one?", "And then?"]
    done = massgen(home, "--automation", "--config", config, "--session-id", session.name, "Why?")
    assert done.returncode == 0, done.stderr
    request = json.loads((newest(home.work / ".massgen" / "massgen_logs") / "config.json").read_text())
    assert [turn["question"] for turn in request["history"]] == [QUESTION]


def test_a_turn_that_a_runner_brought_to_its_end_counts_when_its_session_is_opened(home: TempHome) -> None:
    config = held_team(home, "answer_submitted")
    killed_chat(home, config, "answer_submitted")
    session = only_child(sessions_of(home))
    run_id = str(the_only_run(home)["run_id"])
    resumed = run_command(home, SERVER_MODULE, "resume", run_id)
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout in (f"{run_id}: the run continues in the background\n", f"{run_id}: running\n")
    assert run_command(home, SERVER_MODULE, "wait", run_id, "--timeout", "60").returncode == 0
    assert not [*session.iterdir()], "a turn is written down when it has ended"
    assert massgen(home, "--list-sessions").stdout.endswith(f"  1 turn   {QUESTION}\n")
    home.config("slow", agent("ada"), agent("bo"))
    done = massgen(home, "--automation", "--config", config, "--session-id", session.name, "Why?")
    assert done.returncode == 0, done.stderr
    assert [turn_of(session, number)["state"] for number in (1, 2)] == ["completed", "completed"]
    answer = (session / "turn_1" / "answer.txt").read_text()
    request = json.loads((newest(home.work / ".massgen" / "massgen_logs") / "config.json").read_text())
    (turn,) = request["history"]
    assert turn.pop("opening"), "the next turn keeps it, for a provider's cache"
    assert turn == {"question": QUESTION, "answer": answer}


def test_what_a_person_says_after_a_kill_is_heard_like_what_was_said_before(home: TempHome) -> None:
    def said() -> list[str]:
        return [event["message"] for event in events_of(directory) if event["type"] == "asker_said"]

    with terminal(home, "--config", waiting_team(home), QUESTION) as window:
        window.wait_for("Complete ✓", "Generating…")
        directory = only_child(home.work / ".massgen" / "massgen_logs")
        window.type("sfirst")
        window.wait_for("To the team: first▏")
        window.type("\r")
        poll_until(lambda: said() == ["first"])
        window.kill()
    run_id = str(the_only_run(home)["run_id"])
    with terminal(home, "--resume", run_id) as window:
        window.wait_for("Complete ✓", "Generating…")
        window.type("r")
        window.wait_for("what happened", "1st answer: Forty-two.")
        window.type("ssecond")
        window.wait_for("To the team: second▏")
        window.type("\r")
        poll_until(lambda: said() == ["first", "second"])
        assert "is running" in massgen(home, "--resume", run_id).stderr
        assert the_only_run(home)["status"] == "running"
        window.type("\x03")
        assert window.leave() == INTERRUPTED
    assert the_only_run(home)["status"] == "cancelled"


def test_a_question_that_was_open_at_the_kill_is_asked_again(home: TempHome) -> None:
    ask = {"call": "ask_the_asker", "arguments": {"question": "For which country?"}}
    config = home.config("asker", agent("ada", ask, {"answer": "done"}), orchestrator={"allow_questions": True})
    with terminal(home, "--config", config, QUESTION) as window:
        window.wait_for("Your answer: ▏")
        window.kill()
    with terminal(home, "--resume", str(the_only_run(home)["run_id"])) as window:
        window.wait_for("Waiting for you", "For which country?", "Your answer: ▏")
        window.type("srinagar\r")
        assert window.leave() == 0


# -- what is offered, and what is refused -----------------------------------------------------------------------------


def test_a_single_question_on_a_terminal_names_the_command_that_continues_a_killed_run(home: TempHome) -> None:
    killed(home, "answer_submitted")
    run_id = str(the_only_run(home)["run_id"])
    with terminal(home, "--config", "@examples/scripted", "What else?", size=(120, 24)) as window:
        assert window.leave() == 0
        told = " ".join(window.everything.split())
        assert f"{OFFER}massgen resume --here {run_id} continues it. Team: " in told
    done = massgen(home, "--config", "@examples/scripted", "What else?")
    assert done.stdout.startswith("Neither: "), "a program that reads the output was told of it"
    assert "interrupted" not in done.stdout + done.stderr


def test_only_interrupted_runs_of_the_store_and_of_this_directory_are_offered(home: TempHome) -> None:
    directory = killed(home, "answer_submitted")
    run_id = str(the_only_run(home)["run_id"])
    elsewhere = TempHome(home.path, home.work / "elsewhere")
    shutil.copytree(directory, elsewhere.work / ".massgen" / "massgen_logs" / directory.name)
    with terminal(elsewhere, "--config", "@examples/scripted") as window:
        window.say("/resume")
        window.wait_for("this directory has no interrupted run", READY)
        assert "was interrupted" not in window.everything
    assert run_command(home, SERVER_MODULE, "prune", run_id).returncode == 0
    with terminal(home, "--config", "@examples/scripted") as window:
        window.wait_for(READY)
        assert "was interrupted" not in window.everything


def test_a_run_that_cannot_be_continued_here_is_refused_with_the_command_that_helps(home: TempHome) -> None:
    with started(home, waiting_team(home)) as running:
        directory = log_directory(running)
        poll_until(lambda: happened(directory, "answer_submitted"))
        run_id = str(the_only_run(home)["run_id"])
        refused = massgen(home, "--automation", "--resume", run_id)
        assert (refused.returncode, refused.stdout) == (CONFIG_ERROR, "")
        assert refused.stderr == f"ERROR invalid_action: run {run_id} is running; `massgen watch {run_id}` follows it\n"
        running.terminate()
        assert running.wait(timeout=60) == INTERRUPTED
    ended = massgen(home, "--resume", run_id)
    assert ended.returncode == CONFIG_ERROR
    assert "is cancelled; only interrupted runs can be continued" in ended.stderr
    assert "unknown_run" in massgen(home, "--resume", "run-nobody").stderr
    for more in (["What?"], ["--config", "@examples/scripted"], ["--no-logs"], ["--session-id", "session_1"]):
        wrong = massgen(home, "--resume", run_id, *more)
        assert wrong.returncode == CONFIG_ERROR
        assert re.search("ERROR invalid_arguments: (unknown option|unexpected arguments:) ", wrong.stderr)


def test_a_run_is_continued_only_with_its_keys(home: TempHome) -> None:
    keyed = home.with_variables(TEAM_API_KEY="sk-of-this-test-0123456789")
    server = {"type": "openai", "base_url": "http://127.0.0.1:9/v1"}
    config = keyed.config(
        "keyed",
        agent("ada", {"answer": "early"}, HANG),
        {"id": "bo", "backend": {**server, "model": "gpt-5", "api_key_env": "TEAM_API_KEY"}},
    )
    with started(keyed, config) as running:
        directory = log_directory(running)
        poll_until(lambda: happened(directory, "answer_submitted"))
        kill(keyed)
    run_id = str(the_only_run(home)["run_id"])
    without = massgen(home, "--automation", "--resume", run_id)
    assert (without.returncode, without.stdout) == (CONFIG_ERROR, "")
    assert "ERROR missing_key: agent 'bo' needs TEAM_API_KEY" in without.stderr
    assert the_only_run(home)["status"] == "interrupted"
