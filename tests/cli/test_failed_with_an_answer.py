"""A run that fails by a fault of ours, late: what it had by then is not lost to whoever asked."""

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from massgen_mcp.cli.massgen.main import main
from massgen_mcp.orchestration import final_answer
from tests.harness import TempHome, agent, call


def breaks(**_: object) -> None:
    raise RuntimeError("it broke")


@pytest.fixture
def failed(
    home: TempHome, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, list[str]]:
    """Exit code and output of a `massgen` that breaks when it has voted and is about to end."""
    monkeypatch.setattr(final_answer, "AnswerPresented", breaks)
    monkeypatch.setattr(os, "environ", home.environ)
    monkeypatch.chdir(home.work)
    votes = agent("one", {"answer": "It is 42."}, {"vote": "42"}), agent("two", {"answer": "It is 43."}, {"vote": "42"})
    config = home.config("team", *votes, orchestrator={"final_answer_strategy": "winner_reuse"})
    with pytest.raises(SystemExit) as end:
        main(["--automation", "--output-file", "answer.txt", "--config", config, "What is it?"])
    assert isinstance(end.value.code, int)
    monkeypatch.undo()
    return end.value.code, capsys.readouterr().out.splitlines()


async def test_its_best_answer_is_in_the_output_and_in_the_result(
    home: TempHome, failed: tuple[int, list[str]]
) -> None:
    code, lines = failed
    assert code == 2
    assert lines[-1].startswith("FAILED: internal: RuntimeError: it broke")
    assert "ANSWER_PREVIEW: It is 42." in lines
    assert not [line for line in lines if line.startswith("WINNER")], "it was not presented"
    assert (home.work / "answer.txt").read_text() == "It is 42."
    async with home.client() as client:
        (row,) = (await call(client, "list_runs", state="failed"))["runs"]
        result = await call(client, "get_result", run_id=row["run_id"])
    assert (result["status"], result["outcome"], result["answer"]) == ("failed", "best_so_far", "It is 42.")
    assert result["reason"].startswith("internal: ")


@pytest.fixture
def left_alone(
    home: TempHome, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, list[str]]:
    """Exit code and output of a `massgen` whose three agents answer, and then lose their keys."""
    monkeypatch.setattr(os, "environ", home.environ)
    monkeypatch.chdir(home.work)
    team = [agent(name, {"answer": f"{name} says so."}, {"fail": "auth"}) for name in ("ada", "bo", "cyd")]
    with pytest.raises(SystemExit) as end:
        main(["--automation", "--config", home.config("team", *team), "What is it?"])
    assert isinstance(end.value.code, int)
    monkeypatch.undo()
    return end.value.code, capsys.readouterr().out.splitlines()


async def test_an_answer_that_nobody_could_vote_on_is_no_success_at_any_door(
    home: TempHome, left_alone: tuple[int, list[str]]
) -> None:
    code, lines = left_alone
    assert code == 2
    assert "OUTCOME: best_so_far, 0 of 3 voted; weak: nobody_left" in lines
    assert lines[-1].startswith("FAILED: auth: no agent is left to vote: ")
    status = json.loads(Path(lines[1].removeprefix("STATUS: ")).read_text())
    assert {each["status"] for each in status["agents"].values()} == {"error"}
    async with home.client() as client:
        (row,) = (await call(client, "list_runs", state="failed"))["runs"]
        result = await call(client, "get_result", run_id=row["run_id"])
        standing = await call(client, "get_status", run_id=row["run_id"])
        rest = await call(client, "get_result", run_id=row["run_id"], offset=500)
    assert (result["answer"], result["outcome"]) == ("ada says so.", "best_so_far")
    assert result["note"].startswith("No agent voted for or reviewed ada's answer.")
    assert result["next_step"].startswith("The answer is complete, but no agent voted for it")
    assert "an answer that got no votes" in standing["next_step"]
    assert rest["next_step"].startswith("There is no text at this offset: the text has 12 characters. ")
    kept = Path(result["paths"]["final_answer"])
    assert (kept.parent.parent.name, kept.read_text()) == ("final", "ada says so.")
    assert status["results"]["final_answer_preview"] == "ada says so."


async def read_only_result(home: TempHome, state: str = "completed") -> dict[str, Any]:
    """The result of the only run."""
    async with home.client() as client:
        (row,) = (await call(client, "list_runs", state=state))["runs"]
        return await call(client, "get_result", run_id=row["run_id"])


@pytest.mark.parametrize("repeats", [False, True], ids=["dropped", "repeating its answer"])
@pytest.mark.parametrize(
    ("texts", "answer"),
    [
        (("The opposite of hot is cold.",) * 3, "The opposite of hot is cold."),
        (("It is 41.", "It is 42.", "42"), "It is 42."),
    ],
    ids=["by text", "by number"],
)
def test_a_team_that_cannot_vote_and_agrees_completes_with_a_weak_result(
    home: TempHome,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    texts: tuple[str, ...],
    answer: str,
    *,
    repeats: bool,
) -> None:
    monkeypatch.setattr(os, "environ", home.environ)
    monkeypatch.chdir(home.work)
    team = [
        agent(name, *[{"answer": text}] * 9) if repeats else agent(name, {"answer": text}, {"fail": "auth"})
        for name, text in zip(("ada", "bo", "cyd"), texts, strict=True)
    ]
    with pytest.raises(SystemExit) as end:
        main(["--automation", "--config", home.config("team", *team), "What is it?"])
    lines = capsys.readouterr().out.splitlines()
    monkeypatch.undo()
    assert end.value.code == 0, lines
    assert "OUTCOME: best_so_far, 0 of 3 voted; weak: nobody_left" in lines
    assert f"ANSWER_PREVIEW: {answer}" in lines
    result = anyio.run(read_only_result, home)
    assert (result["answer"], result["decided_by"]) == (answer, ["agreement"])
    assert result["note"].startswith("No agent could vote; ")
    assert Path(result["paths"]["final_answer"]).read_text() == answer


def test_a_team_that_only_repeats_answers_that_differ_fails_with_the_best_one(
    home: TempHome, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "environ", home.environ)
    monkeypatch.chdir(home.work)
    team = [agent(name, *[{"answer": text}] * 9) for name, text in (("ada", "Ice."), ("bo", "Cold."), ("cyd", "Fire."))]
    with pytest.raises(SystemExit) as end:
        main(["--automation", "--config", home.config("team", *team), "What is it?"])
    lines = capsys.readouterr().out.splitlines()
    monkeypatch.undo()
    assert end.value.code == 2
    assert "OUTCOME: best_so_far, 0 of 3 voted; weak: nobody_left" in lines
    cause = "asked to vote, it wrote its own answer once more, and no agent chose between the answers"
    assert lines[-1].startswith(f"FAILED: no_answer: no agent is left to vote: ada, bo, cyd: {cause}")
    result = anyio.run(read_only_result, home, "failed")
    assert (result["answer"], result["outcome"]) == ("Ice.", "best_so_far")
    assert Path(result["paths"]["final_answer"]).read_text() == "Ice."


def test_after_a_tie_whose_voters_fell_out_it_is_not_said_that_nobody_voted(
    home: TempHome, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "environ", home.environ)
    monkeypatch.chdir(home.work)
    team = [agent(name, {"answer": name}, {"vote": name}, {"fail": "auth"}) for name in ("ada", "bo")]
    with pytest.raises(SystemExit) as end:
        main(["--config", home.config("team", *team), "What is it?"])
    told = "".join(capsys.readouterr())
    assert end.value.code == 2
    assert "The votes were tied and no agent was left for a run-off, so " in told
    assert "Nobody voted" not in told


@pytest.mark.parametrize(
    ("second", "third", "outcome", "completed", "code"),
    [
        ([{"answer": "b"}, {"vote": "a"}], [{"answer": "c"}, {"vote": "a"}], "consensus, 3 of 3 voted", 3, 0),
        ([{"answer": "b"}, {"vote": "a"}], [{"fail": "auth"}], "majority, 2 of 3 voted", 2, 0),
        ([{"fail": "auth"}], [{"fail": "auth"}], "single_survivor, 0 of 3 voted; weak: nobody_left", 1, 2),
    ],
)
def test_the_lines_for_programs_say_how_the_winner_was_found_and_who_took_part_to_the_end(
    home: TempHome,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    second: list[dict[str, str]],
    third: list[dict[str, str]],
    outcome: str,
    completed: int,
    code: int,
) -> None:
    monkeypatch.setattr(os, "environ", home.environ)
    monkeypatch.chdir(home.work)
    team = agent("one", {"answer": "a"}, {"vote": "a"}), agent("two", *second), agent("three", *third)
    with pytest.raises(SystemExit) as end:
        main(["--automation", "--config", home.config("team", *team), "What is it?"])
    lines = capsys.readouterr().out.splitlines()
    assert end.value.code == code
    assert f"OUTCOME: {outcome}" in lines
    assert lines[-1].startswith(f"COMPLETED: {completed} agents, ")
