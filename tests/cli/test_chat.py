"""The interactive mode as people use it: in a real pseudo-terminal, and in a pipe."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.cli.massgen.chat import KEYS, MEANINGS
from tests.harness import COMMAND_MODULE, ROOT, TempHome, agent, events_of, happened, poll_until
from tests.terminal import Terminal, only_child, terminal

CONFIG_ERROR, EXECUTION_ERROR = 1, 2
HANG = {"hang": True}
READY = "/ for commands, @ for files"
UP, TAB, ALT_ENTER, CTRL_C = "\x1b[A", "\t", "\x1b\r", "\x03"


def duo(home: TempHome, **settings: Any) -> str:
    """Two agents that agree at once."""
    return home.config("duo", agent("ada"), agent("bo"), **settings)


def chat(home: TempHome, *arguments: str, **settings: Any) -> Any:
    return terminal(home, "--config", duo(home), *arguments, **settings)


def session_of(home: TempHome) -> Path:
    return only_child(home.work / ".massgen" / "sessions")


def leave(window: Terminal) -> int:
    window.say("/quit")
    return window.leave()


# -- beginning --------------------------------------------------------------------------------------------------------


def test_the_banner_shows_the_name_the_team_and_the_way_to_talk(home: TempHome) -> None:
    with chat(home, size=(120, 40)) as window:
        text = window.wait_for("You: ", READY)
        assert "massgen · Multi-Agent (2 agents). Type a question; /help shows commands." in text
        assert re.search(r"Mode: +Multi-Agent \(2 agents\)", text)
        assert re.search(r"├─ ada: +scripted \(scripted\)", text)
        assert re.search(r"└─ bo: +scripted \(scripted\)", text)
        assert "Ctrl-C, /quit or quit leaves." in text
        window.type(CTRL_C)
        window.wait_for("Left the conversation.")
        assert window.leave() == 0
        assert READY not in window.text, "the hint stayed in the scrollback"
    assert not (home.work / ".massgen" / "sessions").exists(), "a conversation without a question left something"


def test_in_a_small_window_the_banner_fits(home: TempHome) -> None:
    with terminal(home, "--model", "scripted/tiny", size=(60, 20)) as window:
        text = window.wait_for("You: ", READY)
        assert "massgen" in text
        assert re.search(r"Mode: +Single Agent", text)
        assert "tiny (scripted)" in text
        window.type("\x04")
        assert window.leave() == 0


# -- turns ------------------------------------------------------------------------------------------------------------


def test_turns_build_on_each_other_and_are_kept_with_a_summary(home: TempHome) -> None:
    with chat(home) as window:
        window.say("What is supervised learning?")
        window.wait_for(" · 00:", "scripted's answer to: What is supervised learning?", READY)
        window.say("And without a teacher?")
        window.wait_for("scripted's answer to: And without a teacher?", READY)
        window.say("r")
        window.wait_for("End: completed (", READY)
        assert leave(window) == 0
        assert "┌─ " not in window.everything
    session = session_of(home)
    assert re.fullmatch(r"session_\d{8}_\d{6}", session.name)
    metadata = json.loads((session / "turn_2" / "metadata.json").read_text())
    request = json.loads((Path(metadata["log_dir"]) / "config.json").read_text())
    (turn,) = request["history"]
    assert re.fullmatch(r"[0-9a-f]{16}", turn.pop("opening")), "the next turn keeps it, for a provider's cache"
    assert turn == {
        "question": "What is supervised learning?",
        "answer": (session / "turn_1" / "answer.txt").read_text(),
    }
    summary = (session / "SESSION_SUMMARY.txt").read_text()
    assert summary.index("What is supervised learning?") < summary.index("And without a teacher?")
    assert (session / "turn_2" / "agent_outputs" / "bo.txt").is_file()


def test_ctrl_c_cancels_a_turn_and_the_conversation_goes_on(home: TempHome) -> None:
    config = home.config("slow", agent("ada", {"answer": "Not done yet."}), agent("bo", HANG))
    with terminal(home, "--config", config) as window:
        window.say("Think hard")
        window.wait_for("Complete ✓", "Generating…")
        window.type(CTRL_C)
        window.wait_for("Cancelled; the best answer so far is ada's", "Not done yet.", READY)
        window.say("/status")
        window.wait_for("Think hard [cancelled]", READY)
        window.type("half a thought")
        window.wait_for("You: half a thought")
        window.type(CTRL_C)
        window.wait_for("You: ", READY)
        window.type(CTRL_C)
        window.wait_for("Left the conversation.")
        assert window.leave() == 0


def test_a_failed_turn_tells_why_and_the_conversation_goes_on(home: TempHome) -> None:
    with terminal(home, "--config", home.config("locked", agent("ada", {"fail": "auth"}))) as window:
        window.say("Hello?")
        window.wait_for("✗ Failed (auth)", READY)
        assert leave(window) == 0


def test_a_turn_that_was_killed_is_lost_and_the_session_goes_on_without_it(home: TempHome) -> None:
    config = duo(home)
    with terminal(home, "--config", config, EDITOR="true") as window:
        window.say("First?")
        window.wait_for("answer to: First?", READY)
        home.config("duo", agent("ada", {"answer": "A"}), agent("bo", HANG))
        window.say("/config")
        window.wait_for("Config: ", READY)
        window.say("Second?")
        window.wait_for("Generating…")
        session = session_of(home)
        window.kill()
    duo(home)
    with terminal(home, "--config", config, "--session-id", session.name) as window:
        window.wait_for(f"Continuing {session.name}: 1 turn so far", READY)
        window.say("Third?")
        window.wait_for("answer to: Third?", READY)
        window.say("/status")
        text = window.wait_for("Conversation 2 turns", READY)
        assert "Second?" not in text.partition("Session ")[2]
        assert leave(window) == 0
    request = json.loads((session / "turn_3" / "metadata.json").read_text())
    assert request["task"] == "Third?"


# -- commands ---------------------------------------------------------------------------------------------------------


def test_every_command_does_what_its_name_says(home: TempHome) -> None:
    with chat(home, size=(100, 40)) as window:
        window.say("/help")
        text = window.wait_for("/help, /h", "/status", "/config", "/clear, /reset", "/quit, /exit, /q", "Ctrl+C", READY)
        assert "show the history of the current turn" in text
        window.say("r")
        window.wait_for("The agents haven't started yet.", READY)
        window.say("/staus")
        window.wait_for("unknown command /staus; did you mean /status?", READY)
        window.say("One?")
        window.wait_for("answer to: One?", READY)
        window.say("/status")
        text = window.wait_for("Conversation 1 turn", READY)
        first = session_of(home).name
        for shown in (
            "Multi-Agent (2 agents)",
            "ada (scripted)",
            "bo (scripted)",
            str(home.work / ".config" / "massgen" / "duo.yaml"),
            first,
            "One? [completed]",
        ):
            assert shown in text.replace("\n", "")  # a terminal breaks a long path where the window ends
        window.say("/clear")
        window.wait_for(f"Conversation cleared. {first} is kept.", READY)
        window.say("Two?")
        window.wait_for("answer to: Two?", READY)
        window.say("/q")
        window.wait_for("Left the conversation.")
        assert window.leave() == 0
    sessions = sorted(path.name for path in (home.work / ".massgen" / "sessions").iterdir())
    assert len(sessions) == 2
    newest = next(name for name in sessions if name != first)
    metadata = json.loads((home.work / ".massgen" / "sessions" / newest / "turn_1" / "metadata.json").read_text())
    assert json.loads((Path(metadata["log_dir"]) / "config.json").read_text())["history"] == []


def test_commands_and_paths_are_completed_and_a_mentioned_file_is_shown_to_the_agents(home: TempHome) -> None:
    (home.work / "notes.txt").write_text("remember\n")
    with chat(home) as window:
        window.wait_for(READY)
        window.type("/")
        window.wait_for("/help", "/reset", "forget the conversation")
        window.type("sta" + TAB)
        window.wait_for("You: /status")
        window.type("\r")
        window.wait_for("starts with your first question", READY)
        window.type("Read @no" + TAB)
        window.wait_for("You: Read @notes.txt")
        window.type(", please\r")
        window.wait_for("answer to: Read @notes.txt, please", READY)
        assert leave(window) == 0
    run = only_child(home.work / ".massgen" / "massgen_logs")
    paths = json.loads((run / "config.json").read_text())["config"]["orchestrator"]["context_paths"]
    assert [path["path"] for path in paths] == [str(home.work / "notes.txt")]


def test_what_was_typed_is_remembered_and_may_have_several_lines(home: TempHome) -> None:
    with chat(home) as window:
        window.wait_for(READY)
        window.type("line one" + ALT_ENTER + "line two")
        window.wait_for("You: line one", "     line two")
        window.type("\r")
        window.wait_for("answer to: line one", READY)
        assert leave(window) == 0
    run = only_child(home.work / ".massgen" / "massgen_logs")
    assert events_of(run)[0]["question"] == "line one\nline two"
    assert (home.work / ".massgen" / "chat_history").stat().st_mode & 0o077 == 0
    with chat(home) as window:
        window.wait_for(READY)
        window.type(UP)
        window.wait_for("You: /quit")
        window.type(UP)
        window.wait_for("You: line one", "     line two")
        window.type(CTRL_C + CTRL_C)
        assert window.leave() == 0


def test_config_opens_the_editor_and_takes_over_what_is_right(home: TempHome) -> None:
    good = home.work / "good.json"
    good.write_text(json.dumps({"agents": [agent("cleo"), agent("dan"), agent("eve")]}))
    bad = home.work / "bad.json"
    bad.write_text(json.dumps({"agents": [agent("cleo")], "orchestrater": {}}))
    # The editor is a script that puts one of them in the place of the file it is given.
    editor = home.work / "editor.py"
    editor.write_text("import sys, shutil\nshutil.copy(open('wanted').read(), sys.argv[1])\n")
    command = shlex.join([sys.executable, str(editor)])
    wanted = home.work / "wanted"
    wanted.write_text(str(bad))
    with chat(home, EDITOR=command, size=(200, 30)) as window:
        window.say("/config")
        window.wait_for("The config has errors, so the team stays the same:", "orchestrater", "orchestrator", READY)
        window.say("/status")
        window.wait_for("Multi-Agent (2 agents)", READY)
        wanted.write_text(str(good))
        window.say("/config")
        window.wait_for("Multi-Agent (3 agents)", "cleo:", READY)
        window.say("Who?")
        window.wait_for("all 3 agree", READY)
        assert leave(window) == 0


def test_a_packaged_config_is_copied_before_it_is_edited(home: TempHome) -> None:
    with terminal(home, "--config", "@examples/scripted", EDITOR="true") as window:
        window.say("/config")
        window.wait_for("Config: ", READY)
        assert str(home.work / ".massgen" / "scripted.yaml") in window.text.replace("\n", "")
        assert leave(window) == 0
    assert (home.work / ".massgen" / "scripted.yaml").read_text().startswith("# Three scripted agents")


# -- windows ----------------------------------------------------------------------------------------------------------


def test_the_prompt_survives_a_changed_window(home: TempHome) -> None:
    with chat(home, size=(100, 30)) as window:
        window.wait_for(READY)
        window.type("before")
        for columns, rows in [(60, 30), (120, 20), (80, 24)]:
            window.resize(columns, rows)
        window.type(" and after")
        window.wait_for("You: before and after")
        assert window.everything.count("You: ") == 1, window.everything
        window.type("\r")
        window.wait_for("answer to: before and after", READY)
        assert leave(window) == 0


# -- pipes ------------------------------------------------------------------------------------------------------------


def piped(home: TempHome, lines: bytes, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    command = [home.python, "-m", COMMAND_MODULE, *arguments]
    return subprocess.run(
        command, cwd=home.work, env=home.environ, input=lines, capture_output=True, timeout=60, check=False
    )


def test_in_a_pipe_every_line_is_a_question_and_the_output_is_plain(home: TempHome) -> None:
    team = duo(home, orchestrator={"commands": {"enabled": True}})
    done = piped(home, b"First?\n\n/status\nSecond?\n", "--config", team)
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout
    text = done.stdout.decode()
    assert text.startswith("massgen · Multi-Agent (2 agents): ada (scripted), bo (scripted)\n")
    assert re.search(r"^(Agents run commands in this sandbox: |massgen won't start this run: )", text, re.MULTILINE)
    assert "\nscripted's answer to: First?\n" in text
    assert "Conversation 1 turn" in text
    assert text.rstrip().endswith("Left the conversation.")
    assert len(list(session_of(home).glob("turn_*"))) == 2


def test_in_a_pipe_the_exit_code_is_that_of_the_last_turn(home: TempHome) -> None:
    config = home.config("locked", agent("ada", {"fail": "auth"}))
    done = piped(home, b"Hello?\n", "--config", config)
    assert done.returncode == EXECUTION_ERROR
    assert b"Failed (auth)" in done.stdout


def test_with_no_logs_a_conversation_leaves_nothing_behind(home: TempHome) -> None:
    done = piped(home, b"First?\nSecond?\n", "--config", duo(home), "--no-logs", "--output-file", "answer.txt")
    assert done.returncode == 0, done.stderr
    assert not (home.work / ".massgen").exists()
    assert (home.work / "answer.txt").read_text() == "scripted's answer to: Second?"


def test_an_output_file_that_cannot_be_written_is_refused_before_anything_begins(home: TempHome) -> None:
    done = piped(home, b"First?\n", "--config", duo(home), "--output-file", "no/such/answer.txt")
    assert done.returncode == CONFIG_ERROR
    assert b"ERROR invalid_arguments: --output " in done.stderr
    assert not (home.work / ".massgen").exists()


@pytest.mark.parametrize("session_id", ["session_20200101_000000", "../elsewhere"])
def test_an_unknown_session_is_refused_before_anything_begins(home: TempHome, session_id: str) -> None:
    done = piped(home, b"First?\n", "--config", duo(home), "--session-id", session_id)
    assert done.returncode == CONFIG_ERROR
    assert b"ERROR invalid_arguments: there is no session" in done.stderr


def test_a_session_in_use_is_refused_to_others(home: TempHome) -> None:
    config = home.config("slow", agent("ada", HANG))
    with terminal(home, "--config", config) as window:
        window.say("Think")
        window.wait_for("Generating…")
        session = session_of(home)
        poll_until(lambda: happened(only_child(home.work / ".massgen" / "massgen_logs"), "round_started"))
        done = piped(home, b"First?\n", "--config", config, "--session-id", session.name)
        assert done.returncode == CONFIG_ERROR
        assert b"another process is using" in done.stderr
        assert piped(home, b"", "--list-sessions").stdout.endswith(b"  0 turns   [in use]\n")


# -- one question of a session ----------------------------------------------------------------------------------------


def test_one_question_can_be_a_turn_of_a_session_and_its_files_go_on(home: TempHome) -> None:
    write = {"call": "write_file", "arguments": {"path": "src/app.py", "content": "print(1)\n"}}
    config = home.config("writer", agent("ada", write, {"answer": "It is in src/app.py."}))
    assert piped(home, b"Write it\n", "--config", config).returncode == 0
    session = session_of(home)
    edit = {
        "call": "edit_file",
        "arguments": {"path": "src/app.py", "old": "print(1)", "new": "print(2)"},
    }
    read = {"call": "read_file", "arguments": {"path": "src/app.py"}}
    config = home.config("editor", agent("ada", read, edit, {"answer": "Edited."}), agent("bo", read))
    done = piped(home, b"", "--config", config, "--session-id", session.name, "--automation", "Now two")
    assert done.returncode == 0, done.stdout
    assert (session / "turn_1" / "workspace" / "src" / "app.py").read_text() == "print(1)\n"
    turn = json.loads((session / "turn_2" / "metadata.json").read_text())
    run = Path(turn["log_dir"])
    results = [event for event in events_of(run) if event["type"] == "tool_finished"]
    assert {(one["agent"], one["name"], one["is_error"]) for one in results} == {
        ("agent_a", "read_file", False),
        ("agent_a", "edit_file", False),
        ("agent_b", "read_file", False),
    }
    assert json.loads((run / "config.json").read_text())["history"][0]["question"] == "Write it"
    listed = piped(home, b"", "--list-sessions")
    assert re.fullmatch(rf"{session.name}  \d{{4}}-\d\d-\d\d \d\d:\d\d  2 turns  Write it\n", listed.stdout.decode())


def test_without_a_session_the_list_says_so(home: TempHome) -> None:
    assert b"No sessions in " in piped(home, b"", "--list-sessions").stdout


# -- the price of it, and the page ------------------------------------------------------------------------------------


def test_a_conversation_or_a_watch_without_a_terminal_does_not_load_the_terminal_library(home: TempHome) -> None:
    start = f"import massgen_mcp.cli.massgen_mcp.verbs.watch; from {COMMAND_MODULE} import main; main()"
    command = [sys.executable, "-X", "importtime", "-c", start, "--config", duo(home)]
    done = subprocess.run(
        command, cwd=home.work, env=home.environ, input="What?\n", capture_output=True, text=True, check=True
    )
    assert "scripted's answer to: What?" in done.stdout
    assert "massgen_mcp.runs.host.execute" in done.stderr
    assert not re.search("prompt_toolkit|rich", done.stderr)


@pytest.mark.parametrize("name", [*MEANINGS, *(key for key, _ in KEYS)])
def test_the_page_names_every_command_and_key(name: str) -> None:
    assert name in (ROOT / "docs" / "interactive.md").read_text()
