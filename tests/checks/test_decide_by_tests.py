"""`decide: checks`: agents write tests that tell their answers apart, and what the tests show decides."""

from collections import Counter
from pathlib import Path

from massgen_mcp.events.agent_work import ModelCallStarted
from massgen_mcp.events.coordination import CheckFinished, StageOpened, VoteCast, WrittenTestsSubmitted
from massgen_mcp.events.run import RunCompleted
from massgen_mcp.views.firmness import cautions
from massgen_mcp.views.outcome import describe_outcome
from tests.checks.project import commit, delete, environ, write
from tests.checks.writers import (
    ADDS_TWO,
    DOUBLE,
    SQUARES,
    TELLING,
    Step,
    agent,
    decided,
    doubling,
    stages,
    test_of,
    tests,
    winner,
)
from tests.teams import upon

__all__ = ["doubling", "environ"]


async def test_the_answer_that_passes_the_tests_of_the_others_wins_without_a_vote(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    ended = await decided(
        tmp_path, doubling, environ,
        agent(ADDS_TWO, "adds", TELLING), agent(SQUARES, "squares", TELLING), agent(DOUBLE, "doubles", tests()),
    )  # fmt: skip
    assert winner(ended) == ("doubles", "tested")
    assert ended.of(VoteCast) == []
    assert len(ended.of(ModelCallStarted)) == 9  # each writes a file, answers, and writes tests
    assert (doubling / "double.sh").read_text() == "exit 1\n"
    (end,) = ended.of(RunCompleted)
    standing = ended.snapshot.coordination.seats["agent_c"].answers[-1].changes
    assert standing is not None
    assert end.changes is not None
    assert end.changes.tree == standing.tree  # what was tested


async def test_a_test_runs_twice_on_the_base_and_on_each_answer_and_three_times_more_on_these_if_it_decides(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    ended = await decided(
        tmp_path, doubling, environ,
        agent(ADDS_TWO, "adds", tests(test_of(3, 6))), agent(SQUARES, "squares"), agent(DOUBLE, "doubles"),
    )  # fmt: skip
    ran = [(event.tree, event.outcome.runs, event.outcome.result) for event in ended.of(CheckFinished)]
    assert Counter(runs for _, runs, _ in ran) == {1: 4, 2: 4, 3: 3, 4: 3, 5: 3}
    assert [result for _, runs, result in ran if runs == 2].count("passed") == 1


async def test_answers_with_the_same_files_need_no_test_and_no_vote(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    ended = await decided(tmp_path, doubling, environ, *(agent(DOUBLE, name) for name in ("one", "two", "three")))
    assert winner(ended)[1] == "same_files"
    assert stages(ended) == []


async def test_where_the_best_pass_as_many_tests_the_agents_vote_on_those(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    vote: Step = {"vote": "also"}
    ended = await decided(
        tmp_path, doubling, environ,
        agent(ADDS_TWO, "adds", TELLING, vote), agent(DOUBLE, "doubles", TELLING, vote),
        agent(f"# also\n{DOUBLE}", "also", tests(), vote),
    )  # fmt: skip
    assert winner(ended) == ("also", "majority")
    assert stages(ended)[-1] == ("vote", "tests_tied", ("agent2.1", "agent3.1"))


async def test_without_a_test_the_agents_vote_on_all(tmp_path: Path, doubling: Path, environ: dict[str, str]) -> None:
    vote: Step = {"vote": "doubles"}
    scripts = [agent(code, name, tests(), vote) for code, name in ((ADDS_TWO, "adds"), (SQUARES, "squares"))]
    ended = await decided(tmp_path, doubling, environ, *scripts, agent(DOUBLE, "doubles", tests(), vote))
    assert winner(ended) == ("doubles", "majority")
    assert stages(ended)[-1][1] == "no_tests"


async def test_two_agents_vote_as_ever(tmp_path: Path, doubling: Path, environ: dict[str, str]) -> None:
    vote: Step = {"vote": "doubles"}
    ended = await decided(tmp_path, doubling, environ, agent(ADDS_TWO, "adds", vote), agent(DOUBLE, "doubles", vote))
    assert winner(ended) == ("doubles", "consensus")
    assert stages(ended) == []


async def test_an_agent_that_fails_while_it_writes_tests_leaves_its_answer_and_the_others_decide(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    ended = await decided(
        tmp_path, doubling, environ,
        agent(ADDS_TWO, "adds", TELLING), agent(SQUARES, "squares", TELLING),
        agent(DOUBLE, "doubles", {"fail": "auth"}),
    )  # fmt: skip
    assert winner(ended) == ("doubles", "tested")


async def test_answers_that_required_checks_exclude_are_out_and_one_that_is_left_wins(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    (doubling / "notes").write_text("kept\n")
    commit(doubling)
    vote: Step = {"vote": "doubles"}
    ended = await decided(
        tmp_path, doubling, environ,
        [delete("notes"), *agent(ADDS_TWO, "adds", vote)], [delete("notes"), *agent(SQUARES, "squares", vote)],
        agent(DOUBLE, "doubles", vote), checks=["grep -q kept notes"], checks_policy="required",
    )  # fmt: skip
    assert winner(ended) == ("doubles", "checked")
    assert stages(ended) == []


async def test_a_vote_or_an_answer_is_refused_while_tests_are_written(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    stubborn: list[Step] = [{"vote": "adds"}, {"answer": "another one"}]
    ended = await decided(
        tmp_path, doubling, environ,
        agent(ADDS_TWO, "adds", *stubborn, TELLING), agent(SQUARES, "squares", TELLING), agent(DOUBLE, "doubles"),
    )  # fmt: skip
    assert winner(ended) == ("doubles", "tested")


async def test_an_answer_that_comes_late_is_tested_by_the_tests_there_are_and_writes_none(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    """Of the first three none is right; the tests of two of them pass for the fourth, which answers when they run."""
    telling, late = tests(test_of(3, 6), test_of(5, 10)), upon(tmp_path, "written_tests_submitted", 2)
    ended = await decided(
        tmp_path, doubling, environ,
        agent(ADDS_TWO, "adds", telling), agent(SQUARES, "squares", telling),
        agent("echo 7\n", "sevens", {**tests(), **upon(tmp_path, "answer_submitted", 4)}),
        [write("double.sh", DOUBLE), {"answer": "doubles", **late}, telling],
        first_answer_wait_seconds=0.3,
    )  # fmt: skip
    assert winner(ended) == ("doubles", "tested")
    assert [len(stage.subjects) for stage in ended.of(StageOpened)] == [3, 4]
    assert all("agent_d" not in stage.agents for stage in ended.of(StageOpened))
    assert "agent_d" not in {event.agent for event in ended.of(WrittenTestsSubmitted)}
    assert ended.snapshot.work_done.weak == ()


async def test_a_winner_of_votes_is_weak_if_another_answer_passes_more_of_the_tests(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    """No answer passes two thirds of the others' tests, so the team votes: for another one than the tests speak for."""
    first, second = tests(test_of(3, 6), test_of(3, 9)), tests(test_of(5, 10), test_of(3, 6), test_of(3, 5))
    vote: Step = {"vote": "adds"}
    ended = await decided(
        tmp_path, doubling, environ,
        agent(ADDS_TWO, "adds", first, vote), agent(SQUARES, "squares", second, vote),
        agent(DOUBLE, "doubles", tests(), vote),
    )  # fmt: skip
    assert winner(ended)[0] == "adds"
    assert ended.snapshot.work_done.weak == ("tests_disagree",)
    assert any("another answer passes more of the tests" in told for told in cautions(ended.snapshot))
    assert "tests favour another answer" in describe_outcome(ended.snapshot)
