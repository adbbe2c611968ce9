"""Sessions on disk: what a turn leaves, who may write, and what survives a kill."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from massgen_mcp.config.models import EarlierTurn
from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.session_directory import Session, Turn, list_sessions
from tests.teams import Ended, run_team, silent_team, team

NOON = 1_800_014_400.0

HOLD = """
import sys
from pathlib import Path
from massgen_mcp.runs.session_directory import Session
session = Session.resume(Path(sys.argv[1]), sys.argv[2])
session.begin_turn("Will it end?", Path("/nowhere"))
print("held", flush=True)
sys.stdin.read()
"""


async def one_turn(session: Session, path: Path, question: str = "Why?") -> tuple[Turn, Ended]:
    open_turn = session.begin_turn(question, path / "run")
    ended = await run_team(path, silent_team(2), question=question)
    return session.end_turn(open_turn, ended.directory, ended.snapshot), ended


def hold_until_killed(sessions: Path, session_id: str) -> None:
    """Another process begins a turn, shuts others out while it lives, and is killed."""
    command = [sys.executable, "-c", HOLD, str(sessions), session_id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(MassgenError, match="in use by another process"):
            Session.resume(sessions, session_id)
        assert [info.busy for info in list_sessions(sessions)] == [True]
        holder.kill()


async def test_a_turn_leaves_its_answer_outputs_log_and_a_summary(tmp_path: Path) -> None:
    with Session.create(tmp_path / "sessions", now=NOON) as session:
        turn, ended = await one_turn(session, tmp_path, "Why is\nit so?")
        assert session.session_id == "session_20270115_120000"
        assert turn.path == session.path / "turn_1"
        answer = ended.snapshot.final_answer
        assert answer
        assert (turn.path / "answer.txt").read_text() == answer
        outputs = {file.name for file in (turn.path / "agent_outputs").iterdir()}
        assert outputs == {f"{view.info.id}.txt" for view in ended.snapshot.agents.values()}
        log = json.loads((turn.path / "coordination_log.json").read_text())
        assert log["events"][-1]["event_type"] == "session_end"
        metadata = json.loads((turn.path / "metadata.json").read_text())
        assert (metadata["turn"], metadata["task"], metadata["state"]) == (1, "Why is\nit so?", "completed")
        assert metadata["winning_agent"] in {view.info.id for view in ended.snapshot.agents.values()}
        summary = (session.path / "SESSION_SUMMARY.txt").read_text()
        assert "You: Why is\n     it so?" in summary
        assert answer in summary


async def test_the_next_turn_sees_the_earlier_ones_also_after_resuming(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    with Session.create(sessions) as session:
        first, _ = await one_turn(session, tmp_path / "a", "Who?")
        assert first.answer is not None
        assert session.history == (EarlierTurn(question="Who?", answer=first.answer),)
        session_id = session.session_id
    with Session.resume(sessions, session_id) as session:
        assert session.history == (EarlierTurn(question="Who?", answer=first.answer),)
        second, _ = await one_turn(session, tmp_path / "b", "And why?")
        assert second.number == 2
        assert [turn.question for turn in session.turns] == ["Who?", "And why?"]


async def test_a_killed_turn_never_counts_and_its_place_is_not_used_again(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    with Session.create(sessions) as session:
        await one_turn(session, tmp_path / "a")
        session_id = session.session_id
    hold_until_killed(sessions, session_id)
    with Session.resume(sessions, session_id) as session:
        assert [turn.number for turn in session.turns] == [1]
        assert "Turn 2" in (session.path / "SESSION_SUMMARY.txt").read_text()
        turn, _ = await one_turn(session, tmp_path / "b")
        assert turn.number == 3
    assert [(info.turns, info.busy) for info in list_sessions(sessions)] == [(2, False)]


def test_sessions_that_begin_in_the_same_second_are_distinct(tmp_path: Path) -> None:
    with Session.create(tmp_path, now=NOON) as one, Session.create(tmp_path, now=NOON) as two:
        assert one.path != two.path
        assert re.fullmatch(r"session_20270115_120000_2", two.session_id)


@pytest.mark.parametrize("session_id", ["session_20200101_000000", "../outside", "", "a/b", ".", "x" * 100, "é\x1b[0m"])
def test_an_unknown_session_is_refused_and_no_path_is_built_from_it(tmp_path: Path, session_id: str) -> None:
    (tmp_path / "outside").mkdir()
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    with pytest.raises(MassgenError, match="there is no session") as refused:
        Session.resume(sessions, session_id)
    assert refused.value.code == "invalid_arguments"
    assert str(refused.value).isprintable()


async def test_a_damaged_turn_is_left_out_and_the_others_stay(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    with Session.create(sessions) as session:
        first, _ = await one_turn(session, tmp_path / "a")
        await one_turn(session, tmp_path / "b")
        session_id = session.session_id
    (first.path / "metadata.json").write_text('{"turn": 1, "sta')
    with Session.resume(sessions, session_id) as session:
        assert [turn.number for turn in session.turns] == [2]
    assert list_sessions(sessions)[0].turns == 1


async def test_a_failed_turn_is_no_part_of_what_agents_are_shown(tmp_path: Path) -> None:
    with Session.create(tmp_path / "sessions") as session:
        open_turn = session.begin_turn("Why?", tmp_path / "run")
        ended = await run_team(tmp_path, team([{"fail": "auth"}]))
        turn = session.end_turn(open_turn, ended.directory, ended.snapshot)
        assert (turn.state, turn.answer) == ("failed", None)
        assert session.history == ()
        assert "(no answer)" in (session.path / "SESSION_SUMMARY.txt").read_text()


async def test_the_winners_files_are_kept_with_the_turn(tmp_path: Path) -> None:
    write = {"call": "write_file", "arguments": {"path": "app.py", "content": "print(1)\n"}}
    with Session.create(tmp_path / "sessions") as session:
        open_turn = session.begin_turn("Write it", tmp_path / "run")
        ended = await run_team(tmp_path, team([write, {"answer": "done"}]))
        turn = session.end_turn(open_turn, ended.directory, ended.snapshot)
        assert session.files == turn.workspace == turn.path / "workspace"
        assert (turn.path / "workspace" / "app.py").read_text() == "print(1)\n"
