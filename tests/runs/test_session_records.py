"""What a project keeps of a session: what a turn leaves, and what of it is read again."""

import json
import re
from pathlib import Path

import pytest

from massgen_mcp.cli.massgen.earlier_runs import open_session
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.question import EarlierTurn
from massgen_mcp.runs.sessions.session_records import SessionRecords, SessionTurn
from tests.teams import run_team, silent_team, team

NOON = 1_800_014_400.0


async def one_turn(session: SessionRecords, path: Path, question: str = "Why?") -> SessionTurn:
    ended = await run_team(path, silent_team(2), question=question)
    return session.keep(ended.directory, ended.snapshot)


async def test_a_turn_leaves_its_answer_outputs_log_and_a_summary(tmp_path: Path) -> None:
    session = SessionRecords.create(tmp_path / "sessions", now=NOON)
    ended = await run_team(tmp_path, silent_team(2), question="Why is\nit so?")
    turn = session.keep(ended.directory, ended.snapshot)
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


async def test_the_turns_are_read_again_in_their_order(tmp_path: Path) -> None:
    session = SessionRecords.create(tmp_path / "sessions")
    first = await one_turn(session, tmp_path / "a", "Who?")
    assert first.answer is not None
    again = SessionRecords(session.path)
    assert again.history == (EarlierTurn(question="Who?", answer=first.answer),)
    assert (await one_turn(again, tmp_path / "b", "And why?")).number == 2
    assert [turn.question for turn in session.turns] == ["Who?", "And why?"]


def test_sessions_that_begin_in_the_same_second_are_distinct(tmp_path: Path) -> None:
    one, two = (SessionRecords.create(tmp_path, now=NOON) for _ in range(2))
    assert one.path != two.path
    assert re.fullmatch(r"session_20270115_120000_2", two.session_id)


@pytest.mark.parametrize("session_id", ["session_20200101_000000", "../outside", "", "a/b", ".", "x" * 100, "é\x1b[0m"])
def test_an_unknown_session_is_refused_and_no_path_is_built_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session_id: str
) -> None:
    monkeypatch.setenv("MASSGEN_MCP_HOME", str(tmp_path / "home"))
    (tmp_path / ".massgen" / "sessions").mkdir(parents=True)
    (tmp_path / ".massgen" / "outside").mkdir()
    with pytest.raises(MassgenError, match="there is no session") as refused:
        open_session(tmp_path, session_id)
    assert refused.value.code == "invalid_arguments"
    assert str(refused.value).isprintable()


async def test_a_damaged_turn_is_left_out_and_the_others_stay(tmp_path: Path) -> None:
    session = SessionRecords.create(tmp_path / "sessions")
    first = await one_turn(session, tmp_path / "a")
    await one_turn(session, tmp_path / "b")
    (first.path / "metadata.json").write_text('{"turn": 1, "sta')
    assert [turn.number for turn in session.turns] == [2]


async def test_a_failed_turn_is_no_part_of_what_agents_are_shown(tmp_path: Path) -> None:
    session = SessionRecords.create(tmp_path / "sessions")
    ended = await run_team(tmp_path, team([{"fail": "auth"}]))
    turn = session.keep(ended.directory, ended.snapshot)
    assert (turn.state, turn.answer) == ("failed", None)
    assert session.history == ()
    assert "(no answer)" in (session.path / "SESSION_SUMMARY.txt").read_text()


async def test_the_winners_files_are_kept_with_the_turn(tmp_path: Path) -> None:
    write = {"call": "write_file", "arguments": {"path": "app.py", "content": "print(1)\n"}}
    session = SessionRecords.create(tmp_path / "sessions")
    ended = await run_team(tmp_path, team([write, {"answer": "done"}]))
    turn = session.keep(ended.directory, ended.snapshot)
    assert turn.workspace == turn.path / "workspace"
    assert (turn.path / "workspace" / "app.py").read_text() == "print(1)\n"
