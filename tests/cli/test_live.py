"""The live view of a run, on the screen of a real pseudo-terminal."""

import json
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.commands import run_command
from tests.harness import SERVER_MODULE, TempHome, agent, happened
from tests.terminal import Resizing, Terminal, newest, only_child, terminal
from tests.wire_double import Aimock

INTERRUPTED, STOPPED = 4, 130
HANG = {"hang": True}
FRAME = "┌─ "
TMUX = {"push": {"TMUX": "none,1,0"}, "crop": {}}

NAIVE_FRAME = """
import os, shutil, signal, sys
def draw(*_):
    width = shutil.get_terminal_size().columns
    sys.stdout.write("\\x1b[6A\\r\\x1b[J" + "".join(f"{row}─ {'─' * (width - 3)}\\r\\n" for row in "┌│││└ "))
    sys.stdout.flush()
signal.signal(signal.SIGWINCH, draw)
sys.stdout.write("\\r\\n" * 6)
draw()
while True:
    signal.pause()
"""

IN_A_SHELL = """
import os, sys
command = '"$0" -m massgen_mcp.cli.massgen.main "$@"; echo it is suspended; read -s -n1; fg'
os.execvp("bash", ["bash", "--norc", "-ic", command, sys.executable, *sys.argv[1:]])
"""
"""Only below a shell there is somebody to go back to."""


def waiting_team(home: TempHome) -> str:
    """One agent has answered, the other one never will."""
    return home.config("waiting", agent("ada", {"answer": "Forty-two, as ever."}), agent("bo", HANG))


@contextmanager
def watched(home: TempHome, *arguments: str, **settings: Any) -> Generator[Terminal]:
    """A run with one agent that hangs, its frame on the screen."""
    with terminal(home, "--config", waiting_team(home), *arguments, "What is it?", **settings) as window:
        window.wait_for("Complete ✓", "Generating…")
        yield window


def frames(window: Terminal) -> int:
    return window.everything.count(FRAME)


def test_agents_their_states_and_what_stays_are_shown_under_the_scrollback(home: TempHome) -> None:
    with watched(home) as window:
        text = window.wait_for("Initial Answer Generation", "◆ 1st answer: Forty-two, as ever.")
        assert "1 of 2 have answered; bo is still writing." in text
        assert re.search(r"│ 1 ada +Complete ✓ .*Forty-two, as ever\. +│", text), text
        assert re.search(r"│ 2 bo +Generating… ", text), text
        assert "1-2 follow  v votes  c compare  s say  f finish  ? keys  Ctrl+C cancel" in text
        assert "LOG_DIR" not in window.everything, "a line is meant for programs"
        assert b"\x1b[?1049h" not in window.bytes, "the alternate screen was taken"
        window.type("\x03")
        assert window.leave() == INTERRUPTED
        assert frames(window) == 0
        assert "◆ 1st answer" in window.everything
        assert happened(only_child(home.work / ".massgen" / "massgen_logs"), "run_cancelled")


def test_a_whole_run_leaves_its_events_and_the_answer_and_no_frame(home: TempHome) -> None:
    with terminal(home, "--config", "@examples/scripted", "Rewrite it?", size=(120, 40)) as window:
        window.wait_for("Coordination Round 2")
        window.wait_for("★ wins with bo's 2nd answer")
        assert window.leave() == 0
        text = window.everything
        assert frames(window) == 0
        assert "votes for bo's 2nd answer: With the comparison in shadow mode" in text
        assert "Every step is small and can be undone" in text
        assert window.echoes


def test_the_final_answer_is_seen_while_it_is_written(home: TempHome) -> None:
    words = " ".join(f"word{number}" for number in range(15_000))  # it takes minutes, however fast the window is read
    config = home.config(
        "writer", agent("ada", {"answer": "one"}, presentation=words, chunk_delay_seconds=0.02), agent("bo")
    )
    with terminal(home, "--config", config, "Write") as window:
        window.wait_until(lambda text: "Presenting…" in text and re.search(r"word\d+", text) is not None)
        assert "└─ 1-2 follow" in window.text
        window.type("s")
        window.wait_for("Too late: the winner is writing the final answer", "s say", absent="To the team: ")
        window.type("\x03")
        assert window.leave() == INTERRUPTED


def test_r_shows_the_whole_coordination_history_and_the_run_goes_on(home: TempHome) -> None:
    with watched(home) as window:
        window.type("r")
        window.wait_for("Coordination history", "starts round 1", "1st answer: Forty-two", "End: running")
        window.wait_until(lambda text: FRAME in text.partition("End: running")[2])
        window.type("\x03")
        assert window.leave() == INTERRUPTED


def test_the_keys_are_explained_an_agents_tools_can_be_followed_and_the_view_can_be_suspended(home: TempHome) -> None:
    look, wrong = (
        {"call": name, "arguments": {"path": path}} for name, path in (("list_files", "."), ("read_file", "no"))
    )
    config = home.config("looking", agent("ada", look, wrong, HANG), agent("bo", HANG))
    with terminal(home, "--config", config, "Look", python=IN_A_SHELL, size=(100, 30)) as window:
        window.wait_for("Generating…", "? keys")
        window.type("?")
        window.wait_for(
            "send a message to the team; each agent reads it at its next step", "Ctrl+Z  suspend this program"
        )
        window.type("1")
        window.wait_for("── ada ─", '$ list_files {"path": "."}', '$ read_file {"path": "no"}', "✗ read_file: ")
        window.type("\x1b")
        window.wait_for("1-2 follow", absent="── ada ─")
        window.type("\x1a")
        window.wait_for("it is suspended", absent=FRAME)
        window.type("x")
        window.wait_for("Generating…", "? keys")
        window.type("\x03")
        window.leave()
        assert "Cancelled" in window.everything


def test_words_appear_while_an_agent_writes_and_its_number_shows_them_at_length(home: TempHome) -> None:
    words = "# A head\n\n" + " ".join(f"**word{number}**" for number in range(15_000))  # it takes minutes
    slow = {"chunk_delay_seconds": 0.02}
    config = home.config("writer", agent("ada", {"answer": words}, **slow), agent("bo", HANG))
    with terminal(home, "--config", config, "Write") as window:
        window.wait_until(lambda text: re.search(r"│ 1 ada +Generating… +\d+\.\d s .*word\d+", text) is not None)
        window.type("1")
        window.wait_until(lambda text: re.search(r"── ada ─+ │\n│ .*word\d+ word\d+", text) is not None)
        assert "**word1 " not in window.everything
        window.type("1")
        window.wait_for("1-2 follow", absent="── ada ─")
        window.type("\x03")
        assert window.leave() == INTERRUPTED


def test_keys_tell_votes_and_differences_and_finish_the_run_when_it_is_meant(home: TempHome) -> None:
    steps = ({"answer": "Forty-one."}, {"answer": "Forty-two."}, {"vote": "own", "reason": "It is *sure*."})
    config = home.config("keys", agent("ada", *steps), agent("bo", {"answer": "Six."}, HANG))
    with terminal(home, "--config", config, "What?", size=(100, 30)) as window:
        window.wait_for("ada ✓ votes for ada's 2nd answer")
        window.type("v")
        window.wait_for("Votes so far", "✓ ada votes for its own 2nd answer: It is sure.")
        window.type("c1")
        window.wait_for("Compare ada with whose answer?")
        window.type("1")
        window.wait_for("Difference: ada's 1st answer → ada's 2nd answer", "-Forty-one.", "+Forty-two.", "1-2 follow")
        window.type("fx")
        window.wait_for("1-2 follow", absent="Finish now")
        window.type("f")
        window.wait_for("Finish now with the existing answers?")
        window.type("f")
        assert window.leave() == 0
        text = window.everything
        assert "☆ ada · weak: 1 of 1 agrees; the run was decided early · " in text
        assert frames(window) == 0
        assert text.index(
            "Forty-two.", text.index("☆ ada · weak: 1 of 1 agrees; the run was decided early · ")
        ) < text.index("Votes\n")


WATCH = "from massgen_mcp.cli.massgen_mcp.main import main; main()"


def test_watch_shows_a_run_of_another_process_and_leaves_it_alone(home: TempHome) -> None:
    with watched(home) as window:
        (run_id,) = re.findall(r"run-\w+", run_command(home, SERVER_MODULE, "runs").stdout)
        with terminal(home, "watch", run_id, python=WATCH, size=(100, 24)) as other:
            other.wait_for("Question: What is it?", "◆ 1st answer: Forty-two", "1 of 2 have answered")
            other.wait_for("1-2 follow", "Ctrl+C leave")
            other.type("s")
            other.wait_for("To the team: ▏")
            other.type("Mind the rests\r")
            other.wait_for("your message to the team: Mind the rests")
            window.wait_for("your message to the team: Mind the rests")
            other.type("\x03")
            assert other.leave() == STOPPED
            assert "The run continues" in other.everything
            assert frames(other) == 0
            assert other.echoes
        assert "Generating…" in window.text
        window.type("ff")
        assert window.leave() == 0
    with terminal(home, "watch", run_id, python=WATCH, size=(100, 24)) as other:
        assert other.leave() == 0
        assert "☆ ada · weak: no agent reviewed the answer; an agent was left out · " in other.everything
        assert "Next   `massgen result run-" in other.everything


def test_in_plain_sentences_there_are_no_signs_and_no_escapes(home: TempHome) -> None:
    with terminal(home, "--plain", "--config", "@examples/scripted", "Rewrite it?", size=(200, 40)) as window:
        assert window.leave() == 0
        assert b"\x1b" not in window.bytes
        assert not set("┌│└─◆✓✗★≠•…") & set(window.everything.replace("…", ""))
        assert "cleo votes for its own 1st answer\n" in window.everything


def test_a_mentioned_file_is_given_to_the_agents_and_images_and_other_places_are_refused(home: TempHome) -> None:
    (home.work / "notes.txt").write_text("remember\n")
    (home.work / "shot.png").write_bytes(b"\x89PNG")
    config = home.config("one", agent("ada", {"answer": "read"}))
    for mention, told in (
        ("@shot.png", "@shot.png is an image"),
        ("@/etc/hosts", "@/etc/hosts: with @, you can name only files in "),
    ):
        with terminal(home, "--config", config, f"See {mention}", TERM="dumb") as window:
            assert window.leave() == 1
            assert told in window.everything
    assert not (home.work / ".massgen").exists(), "a run has begun"
    with terminal(home, "--config", config, "Read @notes.txt, please", TERM="dumb") as window:
        assert window.leave() == 0
    run = only_child(home.work / ".massgen" / "massgen_logs")
    paths = json.loads((run / "config.json").read_text())["config"]["orchestrator"]["context_paths"]
    assert [path["path"] for path in paths] == [str(home.work / "notes.txt")]


@pytest.mark.parametrize("resizing", ["crop", "push"])
def test_a_changed_window_leaves_no_frame_behind(home: TempHome, resizing: Resizing) -> None:
    with watched(home, size=(100, 24), **TMUX[resizing]) as window:
        window.wait_until(lambda _: _rests(window, resizing))
        for columns, rows in [(96, 24), (92, 24), (88, 24), (60, 24), (90, 12), (40, 20), (120, 40), (80, 24)]:
            window.resize(columns, rows)
            window.wait_until(lambda _: _framed(window) and frames(window) == 1 and _rests(window, resizing))
        assert window.everything.count("◆ 1st answer") == 1, "what stood above the frame is gone"
        window.type("\x03")
        assert window.leave() == INTERRUPTED


def test_in_tmux_the_frame_keeps_away_from_the_edge_of_the_window_when_the_run_is_slow_to_begin(home: TempHome) -> None:
    gate = home.work / "gate"
    os.mkfifo(gate)
    slow = {"command": "sh", "args": ["-c", f"read go < {gate}"], "sandbox": False, "start_seconds": 300}
    config = home.config("slow", agent("ada", HANG, mcp_servers={"slow": slow}))
    with terminal(home, "--config", config, "What is it?", size=(100, 24), **TMUX["push"]) as window:
        where = re.compile(rb"\x1b\[6n.*\n.*(\x1b\[\?7h.*){3}", re.DOTALL)
        window.wait_until(lambda _: where.search(window.bytes) is not None)  # where it is has been asked, and was heard
        gate.write_text("go\n")
        window.wait_until(lambda _: _rests(window, "push"))


def test_an_answer_of_tmux_to_an_earlier_question_does_not_misplace_the_frame(home: TempHome) -> None:
    """Where it is, is asked at each change of the window."""
    with watched(home, size=(100, 24), **TMUX["push"]) as window:
        window.wait_until(lambda _: _rests(window, "push"))
        held = list[str]()
        answer = window.screen.write_process_input

        def hold(data: str) -> None:
            held.append(data)

        window.screen.write_process_input = hold
        for asked, columns in ((1, 96), (2, 92)):
            window.resize(columns, 24)
            window.wait_until(lambda _, asked=asked: len(held) >= asked)
        window.screen.write_process_input = answer
        for one in held:
            answer(one)
            drawn = window.bytes.count(b"\x1b[?7h")
            window.wait_until(lambda _, drawn=drawn: window.bytes.count(b"\x1b[?7h") > drawn + 3)
        window.wait_until(lambda _: _framed(window) and _rests(window, "push"))


def _framed(window: Terminal) -> bool:
    """Whether the frame fits the window: its upper edge reaches the last column, and it is whole."""
    columns = window.screen.columns
    return any(len(row) == columns and row.startswith(FRAME) for row in window.rows) and "└─ " in window.text


def _rests(window: Terminal, resizing: Resizing) -> bool:
    """Whether the cursor rests on the first row of a whole frame; in tmux, away from the upper edge of the window."""
    rows = [row[:1] for row in window.screen.display]
    if not {"┌", "└"} <= set(rows):
        return False
    top = rows.index("┌")
    high = rows.index("└") - top + 1
    room = min(2 * high, window.screen.lines - high) if resizing == "push" else 0
    return window.screen.cursor.y == top >= room


def test_a_naive_frame_would_be_left_behind(home: TempHome) -> None:
    """The known-bad twin: a frame that is erased from below, as many rows up as it was high."""
    with terminal(home, python=NAIVE_FRAME, size=(100, 24), **TMUX["push"]) as window:
        window.wait_until(lambda _: _framed(window))
        for columns, rows in [(60, 24), (90, 12), (40, 24), (120, 40)]:
            window.resize(columns, rows)
            window.wait_until(lambda _: _framed(window))
        assert frames(window) > 1


def test_ten_agents_fit_into_a_window_of_twenty_lines(home: TempHome) -> None:
    agents = [agent(f"agent-number-{number}", HANG) for number in range(10)]
    with terminal(home, "--config", home.config("ten", *agents), "What?", size=(80, 20)) as window:
        text = window.wait_for("agent-number-0", "agent-number-9", FRAME, "└─ ")
        assert max(map(len, text.splitlines())) <= 80
        window.resize(80, 11)
        window.wait_for("agent-number-0", "… and 5 more agents", FRAME, "└─ ")
        window.type("\x03")
        assert window.leave() == INTERRUPTED


def test_without_colour_no_attribute_is_set(home: TempHome) -> None:
    with watched(home, NO_COLOR="1") as window:
        assert set(re.findall(rb"\x1b\[([0-9;]*)m", window.bytes)) <= {b"", b"0"}
    with watched(home) as window:
        assert len(set(re.findall(rb"\x1b\[([0-9;]*)m", window.bytes))) > 3


def test_a_terminal_that_can_do_nothing_gets_plain_lines(home: TempHome) -> None:
    with terminal(home, "--config", "@examples/scripted", "Rewrite it?", TERM="dumb") as window:
        assert window.leave() == 0
        assert b"\x1b" not in window.bytes
        assert "votes for bo's 2nd answer" in window.everything


async def test_what_a_model_writes_can_do_nothing_to_the_terminal(home: TempHome, aimock: Aimock) -> None:
    evil = "Calm.\x1b]0;owned\x07\x1b[2J\x1b[31m\u202eno\x9b1m"
    aimock.load(
        {"match": {"model": "m"}, "response": {"toolCalls": [{"name": "new_answer", "arguments": {"content": evil}}]}}
    )
    backend = {"type": "chatcompletion", "model": "m", "base_url": f"{aimock.url}/v1"}
    config = home.config("evil", {"id": "ada", "backend": backend}, agent("bo", HANG))
    with terminal(home, "--config", config, "What?") as window:
        window.wait_for("Calm. ]0;owned")
        window.type("r")
        window.wait_for("what happened", "1st answer: Calm.")
        window.type("\x03")
        assert window.leave() == INTERRUPTED
        for harmful in (b"\x1b]0;owned", b"\x1b[2J", "\u202e".encode(), "\x9b".encode()):
            assert harmful not in window.bytes


def test_two_interrupts_leave_at_once_and_the_terminal_is_as_it_was(home: TempHome) -> None:
    with watched(home) as window:
        assert not window.echoes
        window.type("\x03\x03")
        assert window.leave() == INTERRUPTED
        assert frames(window) == 0
        assert re.search(r"\brun-\w{8}", window.everything), "nothing says which run it was"
        assert window.echoes
        assert b"\x1b[?25l" in window.bytes
        assert window.bytes.rindex(b"\x1b[?25h") > window.bytes.rindex(b"\x1b[?25l"), "the cursor stayed hidden"


def test_an_interrupt_while_the_end_of_a_cancelled_run_is_told_leaves_its_id(home: TempHome) -> None:
    begun, gone = home.work / "begun", home.work / "gone"
    waits = f"sh -c 'touch {begun}; until [ -e {gone} ]; do sleep 0.1; done'"
    with watched(home, "--notify", waits) as window:
        window.type("\x03")
        window.wait_until(lambda _: begun.exists())
        window.type("\x03")
        assert window.leave() == INTERRUPTED
        assert re.search(r"Stopped\. run-\w+: ", window.everything), window.everything
    gone.touch()


def test_a_person_can_say_something_to_the_team_while_it_works(home: TempHome) -> None:
    with watched(home) as window:
        window.type("s")
        window.wait_for("To the team: ▏")
        window.type("Mind the rests\x7f\x7f")
        window.wait_for("To the team: Mind the res▏")
        window.type("\r")
        window.wait_for("your message to the team: Mind the res", "s say")
        window.type("s\x1b")
        window.wait_for("s say", absent="To the team")
        window.type("\x03")
        assert window.leave() == INTERRUPTED


def test_a_person_answers_what_an_agent_asks(home: TempHome) -> None:
    ask = {"call": "ask_the_asker", "arguments": {"question": "For which of the two countries is it meant, " * 3}}
    config = home.config("asker", agent("ada", ask, {"answer": "done"}), orchestrator={"allow_questions": True})
    with terminal(home, "--config", config, "Do it") as window:
        text = window.wait_for("Waiting for you", "? needs a decision (question): For which", "Your answer: ▏")
        assert " ".join(text.split()).count("For which of the two countries") == 3, "the question is cut off"
        window.type("srinagar is not one\r")
        assert window.leave() == 0
        assert "decision made (question): srinagar is not one" in window.everything


def test_a_person_raises_the_budget_or_ends_the_run_with_what_is_there(home: TempHome) -> None:
    steps = [{"answer": f"draft {number}"} for number in range(3)]
    budget = {"max_tokens": 1000, "at_cap": "ask"}
    config = home.config("poor", agent("ada", *steps), agent("bo", {"answer": "one"}), budget=budget)
    with terminal(home, "--config", config, "Do it") as window:
        window.wait_for("Waiting for you", "New limit in $ (leave empty to finish): ▏")
        window.type("a lot\r")
        window.wait_for("New limit in $ (leave empty to finish): ▏")
        window.type("$500\r")
        window.wait_for("the budget is now $500")
        assert window.leave() == 0
    priced = {"price": {"input_usd_per_million": 100, "output_usd_per_million": 100}}
    poor = home.config("poorer", agent("ada", *steps, **priced), budget={"max_usd": 0.002, "at_cap": "ask"})
    with terminal(home, "--config", poor, "Do it") as window:
        window.wait_until(lambda text: re.search(r"New limit in \$, such as [\d.]+ \(leave empty", text) is not None)
        window.type("\x03")
        window.leave()
    with terminal(home, "--config", config, "Do it") as window:
        window.wait_for("New limit in $ (leave empty to finish): ▏")
        window.type("\r")
        window.leave()
        assert happened(newest(home.work / ".massgen" / "massgen_logs"), "finish_requested")
