"""`write_check: true`: before anybody answers an agent writes a failing test, and two others confirm it blind."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.agent_work import ModelCallStarted
from massgen_mcp.events.coordination import AgentDropped, AnswerSubmitted, CheckFinished, StageOpened, VoteCast
from massgen_mcp.events.parts import Event
from massgen_mcp.events.run import RunCompleted
from massgen_mcp.views import checks as views
from tests.checks.project import commit, environ, team_on, write
from tests.checks.writers import ADDS_TWO, DOUBLE, SQUARES, FinishIn, Step, doubling, settle, test_of, tests, winner
from tests.orchestration.test_resume import journaled
from tests.stage import perform, text_of
from tests.teams import Act, Ended, run_team

__all__ = ["doubling", "environ"]
TEST = tests(test_of(3, 6))
NONE = tests()
SIX = settle(" 6\n")
"""What a right answer prints."""
VOTE: Step = {"vote": "squares"}
WHOLE = [("check", "wanted"), ("confirm", "fails_before"), ("answer", "check_tells"), ("answer", "none_passes")]


async def played(
    path: Path,
    place: Path,
    environ: dict[str, str],
    first: Sequence[Step],
    writer: Sequence[Step],
    third: Sequence[Step],
    *,
    codes: tuple[str, str, str] = (ADDS_TWO, DOUBLE, SQUARES),
    act: Act | None = None,
    **orchestrator: Any,
) -> Ended:
    """What each does before it answers; the lots of the run have the second one write, and after it the third. They
    are asked for answers in the order of the list.
    """
    names = ("adds", "doubles", "squares")
    scripts = [
        [*before, write("double.sh", code), {"answer": name}, VOTE]
        for before, code, name in zip((first, writer, third), codes, names, strict=True)
    ]
    settings: dict[str, Any] = {"decide": "vote", "order": "listed", "checks": [], "write_check": True, **orchestrator}
    return await run_team(path, team_on(place, *scripts, **settings), environ=environ, act=act)


def opened(ended: Ended) -> list[tuple[str, str]]:
    return [(stage.kind, stage.because) for stage in ended.of(StageOpened)]


def told(ended: Ended) -> list[tuple[str, str | None]]:
    return [(one["by"], one.get("void")) for one in views.written_tests(ended.snapshot)]


async def test_agents_are_asked_one_after_the_other_until_an_answer_passes_the_failing_test(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    ended = await played(tmp_path, doubling, environ, [SIX], [TEST], [SIX])
    assert winner(ended) == ("doubles", "checked")
    assert opened(ended) == WHOLE
    assert [stage.agents for stage in ended.of(StageOpened)][1:] == [("agent_c", "agent_a"), ("agent_a",), ("agent_b",)]
    assert len(ended.of(ModelCallStarted)) == 1 + 2 + 2 * 2
    assert ended.of(VoteCast) == []
    (end,), answers = ended.of(RunCompleted), ended.of(AnswerSubmitted)
    stood = answers[-1].changes
    assert end.changes is not None
    assert stood is not None
    assert end.changes.tree == stood.tree
    ran = [(one.outcome.result, one.outcome.runs) for one in ended.of(CheckFinished)]
    assert ran == [("failed", 1), ("failed", 2), ("failed", 1), ("failed", 2), ("passed", 1), ("passed", 2)]


async def test_readers_are_told_of_the_failing_test_and_who_passes_it(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    ended = await played(tmp_path, doubling, environ, [SIX], [TEST], [SIX])
    (test,) = views.written_tests(ended.snapshot)
    passed = {"by": "agent_b", "passed": ["agent2.1"], "failed": ["agent1.1"]}
    assert test == {"title": "the double of 3", "script": "sh double.sh 3", "expected": "6", **passed}
    says = "agent2's 1st answer passes agent2's test, which failed at first and was confirmed by two other agents"
    assert views.standing_in_tests(ended.snapshot) == says
    assert (says, False) in views.tests_notes(ended.snapshot)


def one_test(script: str, expected: str) -> Step:
    return tests({"title": "a test", "script": script, "expected": expected})


VOID: dict[str, tuple[Step, Step, str]] = {
    "passes before": (one_test("echo 1", "1"), SIX, "it passes on the unchanged files"),
    "nobody agrees": (TEST, settle("9"), "two others, who saw its script alone, do not both expect what it does"),
    "nobody knows": (TEST, settle(), "two others, who saw its script alone, do not both expect what it does"),
}


@pytest.mark.parametrize("case", VOID)
async def test_a_test_that_passes_before_or_is_not_confirmed_by_both_is_void_and_one_more_agent_may_write(
    tmp_path: Path, doubling: Path, environ: dict[str, str], case: str
) -> None:
    written, said, void = VOID[case]
    asked = [said] if case != "passes before" else []
    first = [*asked, SIX]
    ended = await played(tmp_path, doubling, environ, first, [written, SIX], [*([SIX] if asked else []), TEST])
    assert told(ended) == [("agent_b", void), ("agent_c", None)]
    assert winner(ended) == ("doubles", "checked")
    assert [one for one in opened(ended) if one[0] == "check"] == [("check", "wanted"), ("check", "void")]


async def test_after_two_writers_the_team_answers_and_votes_without(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    ended = await played(tmp_path, doubling, environ, [], [NONE], [one_test("echo 1", "1")], effort="high")
    assert opened(ended) == [("check", "wanted"), ("check", "void"), ("answer", "start"), ("vote", "disagreement")]
    assert winner(ended) == ("squares", "majority")


async def test_an_agent_that_falls_out_before_it_wrote_or_confirmed_is_replaced_once(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    ended = await played(tmp_path, doubling, environ, [SIX], [{"fail": "auth"}], [TEST])
    assert [one.agent for one in ended.of(AgentDropped)] == ["agent_b"]
    assert ("check", "void") not in opened(ended), "two are left, and nobody could confirm what one of them writes"
    assert winner(ended)[1] != "checked"


async def test_where_no_answer_passes_it_the_team_votes_on_all(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    codes = (ADDS_TWO, ADDS_TWO + "#\n", SQUARES)
    ended = await played(tmp_path, doubling, environ, [SIX], [TEST], [SIX], codes=codes)
    assert opened(ended)[-1] == ("vote", "none_passes")
    assert winner(ended) == ("squares", "majority")
    assert views.standing_in_tests(ended.snapshot).startswith(
        "agent3's 1st answer fails agent2's test, which failed at first"
    )


async def test_what_the_test_reads_of_protected_files_is_as_it_was(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    (doubling / "tests").mkdir()
    (doubling / "tests" / "run.sh").write_text("sh double.sh 3\n")
    commit(doubling)
    cheats = write("tests/run.sh", "echo 6\n")
    by_helper = one_test("sh tests/run.sh", "6")
    ended = await played(tmp_path, doubling, environ, [SIX, cheats], [by_helper], [SIX])
    assert winner(ended) == ("doubles", "checked")


async def test_a_check_of_the_user_that_fails_already_is_enough(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    check = "grep -q '[*] 2' double.sh"
    ended = await played(tmp_path, doubling, environ, [], [], [], checks=[check], effort="auto")
    assert opened(ended) == WHOLE[2:]
    assert winner(ended) == ("doubles", "checked")


async def test_a_hostile_script_reaches_nothing_around_the_files(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("kept")
    script = f"rm -rf {outside} {doubling}/double.sh; cat {outside}; env | grep -c MASSGEN; echo; sh double.sh 3"
    ended = await played(tmp_path, doubling, environ, [settle("no")], [one_test(script, "kept")], [settle("no"), NONE])
    assert outside.read_text() == "kept"
    assert (doubling / "double.sh").read_text() == "exit 1\n"
    assert not any("kept" in one.outcome.excerpt for one in ended.of(CheckFinished))


async def test_another_action_than_the_test_is_refused_and_told(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    ended = await played(tmp_path, doubling, environ, [SIX], [{"answer": "at once"}, TEST], [SIX])
    assert ended.of(AgentDropped) == []
    assert winner(ended) == ("doubles", "checked")


@pytest.mark.parametrize("kind", ["check", "confirm"])
async def test_told_to_finish_before_anybody_answered_the_team_goes_on_without(
    tmp_path: Path, doubling: Path, environ: dict[str, str], kind: str
) -> None:
    hangs: list[Step] = [{"hang": True}]
    before = [hangs, [TEST], hangs] if kind == "confirm" else [[], hangs, []]
    ended = await played(tmp_path, doubling, environ, *before, act=FinishIn(kind))
    assert winner(ended)[1] == "best_so_far"


async def test_who_confirms_sees_the_script_alone_and_who_answers_the_whole_test(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    written = tests({"title": "triples", "script": "sh double.sh 3", "expected": "xyz"})
    ended = await played(tmp_path, doubling, environ, [settle("xyz")], [written], [settle("xyz")])

    def until(kind: str) -> list[Event]:
        place = next(
            place for place, one in enumerate(ended.events) if isinstance(one, StageOpened) and one.kind == kind
        )
        return ended.events[: place + 1]

    rules = Rules(seed="run-test", write_check=True, order="listed")
    blind = await perform(
        [settle("xyz"), {"answer": "a"}], [], [settle("xyz")], rules=rules, past=journaled(until("confirm"))
    )
    text = text_of(blind.asked(2)[0])
    assert "sh double.sh 3" in text
    assert not [word for word in ("xyz", "triples") if word in text]
    assert [tool.name for tool in blind.asked(2)[0].tools] == ["submit_outputs"]
    text = text_of(blind.asked(0)[1])
    assert all(word in text for word in ("sh double.sh 3", "xyz", "triples", "the files of an answer have to pass it"))


def test_fewer_than_three_that_answer_or_scripts_that_do_not_run_are_refused_by_name() -> None:
    def config(size: int, **more: Any) -> None:
        data = {"agents": [{"backend": {"type": "scripted"}}] * size, "orchestrator": {"write_check": True, **more}}
        config_from_data(data, "test", environ={})

    config(3)
    with pytest.raises(Exception, match="one writes a test and two confirm it"):
        config(2)
    with pytest.raises(ValidationError, match="write_check runs scripts"):
        OrchestratorConfig(write_check=True, run_scripts=False)
