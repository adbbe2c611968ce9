"""`refute: true`: after a vote an agent of another vendor writes tests against the winner, and a third one settles."""

from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.agent_work import MessagesShown, ModelCallStarted, RoundStarted
from massgen_mcp.events.coordination import AnswerSubmitted, FilesChecked, StageOpened, WinnerChosen
from massgen_mcp.events.run import RunCompleted
from massgen_mcp.views.firmness import cautions
from tests.checks.project import environ, write
from tests.checks.writers import ADDS_TWO, DOUBLE, SQUARES, Step, agent, doubling, test_of, tests
from tests.orchestration.test_resume import journaled
from tests.stage import perform, text_of
from tests.teams import Act, Ended, run_team

__all__ = ["doubling", "environ"]
VOTE: Step = {"vote": "adds"}
OBJECTION = tests(test_of(3, 6))


def settle(*outputs: str) -> Step:
    return {"call": "submit_outputs", "arguments": {"outputs": list(outputs)}}


def mend(code: str) -> list[Step]:
    return [write("double.sh", code), {"answer": "mended"}]


async def challenged(
    path: Path,
    place: Path,
    environ: dict[str, str],
    author: list[Step],
    refuter: list[Step],
    third: list[Step],
    act: Act | None = None,
    **orchestrator: Any,
) -> Ended:
    """`adds` wins all votes. Only the second agent is of another vendor than its author."""
    scripts = (
        agent(ADDS_TWO, "adds", VOTE, *author),
        agent(SQUARES, "squares", VOTE, *refuter),
        agent(DOUBLE, "doubles", VOTE, *third),
    )
    models = ("one", "two", "one")
    backends = [
        {"type": "scripted", "script": script, "model": model} for script, model in zip(scripts, models, strict=True)
    ]
    settings = {"context_paths": [{"path": str(place)}], "decide": "vote", "refute": True, **orchestrator}
    data = {"agents": [{"backend": one} for one in backends], "orchestrator": settings}
    return await run_team(path, config_from_data(data, "test", environ={}), environ=environ, act=act)


def came_to(ended: Ended) -> tuple[str | None, str]:
    (won,) = ended.of(WinnerChosen)
    (end,) = ended.of(RunCompleted)
    assert won.outcome == end.outcome == "consensus"
    stood = next(one for one in ended.of(AnswerSubmitted) if one.label == won.label)
    assert stood.changes is not None
    assert end.changes is not None
    assert end.changes.tree == stood.changes.tree
    return won.challenge, end.answer


CASES: dict[str, tuple[list[Step], list[Step], list[Step], str, str]] = {
    "nothing is found": ([], [tests()], [], "withstood", "adds"),
    "the files pass": ([], [tests(test_of(2, 4))], [], "withstood", "adds"),
    "the third expects something else": ([], [tests(test_of(3, 9))], [settle("6")], "unproven", "adds"),
    "the third knows nothing": ([], [OBJECTION], [settle()], "unproven", "adds"),
    "the author mends": (mend(DOUBLE), [OBJECTION], [settle(" 6\n")], "mended", "mended"),
    "the mended files fail, too": (mend(SQUARES), [OBJECTION], [settle("6")], "refuted", "adds"),
    "nothing is mended": ([{"answer": "mended"}], [OBJECTION], [settle("6")], "refuted", "adds"),
    "the mended files fail what passed": (
        mend("test $1 = 2 || echo 6\n"), [tests(test_of(3, 6), test_of(2, 4))], [settle("6", "4")], "refuted", "adds",
    ),
    "the refuter fails": ([], [{"fail": "auth"}], [], "not_challenged", "adds"),
    "the third fails": ([], [OBJECTION], [{"fail": "auth"}], "not_challenged", "adds"),
    "the author fails": ([{"fail": "auth"}], [OBJECTION], [settle("6")], "refuted", "adds"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("case", "weak", "sentence"),
    [
        ("nothing is mended", ("refuted",), "It fails a test that an agent from another vendor wrote and a third"),
        (
            "the third knows nothing",
            (),
            "It fails a test that an agent from another vendor wrote, but no other agent confirmed the test.",
        ),
        ("the files pass", (), ""),
    ],
)
async def test_readers_are_told_what_tests_against_the_winner_came_to(
    tmp_path: Path, doubling: Path, environ: dict[str, str], case: str, weak: tuple[str, ...], sentence: str
) -> None:
    author, refuter, third, _, _ = CASES[case]
    state = (await challenged(tmp_path, doubling, environ, author, refuter, third)).snapshot
    assert state.work_done.weak == weak
    told = " ".join(cautions(state))
    assert (sentence in told) if sentence else ("test" not in told)


@pytest.mark.parametrize("case", CASES)
async def test_a_winner_stands_unless_two_agents_expect_the_same_and_its_files_do_not_print_it(
    tmp_path: Path, doubling: Path, environ: dict[str, str], case: str
) -> None:
    author, refuter, third, challenge, answer = CASES[case]
    ended = await challenged(tmp_path, doubling, environ, author, refuter, third)
    assert came_to(ended) == (challenge, answer)
    assert (doubling / "double.sh").read_text() == "exit 1\n"
    assert len(ended.of(ModelCallStarted)) <= 9 + 3 + 1


async def test_who_settles_sees_neither_an_answer_nor_what_is_expected(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    ended = await challenged(tmp_path, doubling, environ, [], [tests(test_of(3, 777))], [settle("6")])
    settling = next(one for one in ended.of(RoundStarted) if one.kind == "settle")
    assert settling.ballot == ()
    (stage,) = [one for one in ended.of(StageOpened) if one.kind == "settle"]
    assert stage.agents == ("agent_c",)
    assert not ended.of(MessagesShown)


async def test_the_request_to_who_settles_has_the_script_and_nothing_of_answer_title_or_expectation(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    objection = tests({"title": "triples", "script": "sh double.sh 3", "expected": "777"})
    ended = await challenged(tmp_path, doubling, environ, [], [objection], [settle("6")])
    opened = next(
        place for place, one in enumerate(ended.events) if isinstance(one, StageOpened) and one.kind == "settle"
    )
    before = ended.events[: opened + 1]
    rules = Rules(seed="run-test", refute=True, vendors={"agent_a": "one", "agent_b": "two", "agent_c": "one"})
    again = await perform([], [], [settle("6")], question="Double.", rules=rules, past=journaled(before))
    (request,) = again.asked(2)
    text = text_of(request)
    assert "sh double.sh 3" in text
    assert not [word for word in ("777", "triples", "adds", "squares", "doubles", ADDS_TWO.strip()) if word in text]
    assert [tool.name for tool in request.tools] == ["submit_outputs"]


async def test_checks_that_the_winner_passed_have_to_pass_for_the_mended_answer(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    check = "! grep -q '[*]' double.sh"
    ended = await challenged(tmp_path, doubling, environ, mend(DOUBLE), [OBJECTION], [settle("6")], checks=[check])
    assert came_to(ended) == ("refuted", "adds")


async def test_checks_of_a_mended_answer_run_twice_before_it_stands(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    check = "test -s double.sh"
    ended = await challenged(tmp_path, doubling, environ, mend(DOUBLE), [OBJECTION], [settle("6")], checks=[check])
    assert came_to(ended) == ("mended", "mended")
    (won,) = ended.of(WinnerChosen)
    runs = [one.runs for found in ended.of(FilesChecked) if found.label == won.label for one in found.outcomes]
    assert runs == [1, 2]


async def test_a_team_of_one_vendor_challenges_nobody(tmp_path: Path, doubling: Path, environ: dict[str, str]) -> None:
    scripts = [agent(ADDS_TWO, "adds", VOTE), agent(DOUBLE, "doubles", VOTE), agent(SQUARES, "squares", VOTE)]
    data = {
        "agents": [{"backend": {"type": "scripted", "script": script}} for script in scripts],
        "orchestrator": {"context_paths": [{"path": str(doubling)}], "decide": "vote", "refute": True},
    }
    ended = await run_team(tmp_path, config_from_data(data, "test", environ={}), environ=environ)
    assert [one.challenge for one in ended.of(WinnerChosen)] == ["not_challenged"]
    assert ended.of(StageOpened) == []


async def test_after_tests_have_decided_nobody_is_challenged(
    tmp_path: Path, doubling: Path, environ: dict[str, str]
) -> None:
    telling = tests(test_of(3, 6), test_of(5, 10))
    data = {
        "agents": [
            {"backend": {"type": "scripted", "model": name, "script": agent(code, name, telling)}}
            for code, name in ((ADDS_TWO, "adds"), (SQUARES, "squares"), (DOUBLE, "doubles"))
        ],
        "orchestrator": {"context_paths": [{"path": str(doubling)}], "refute": True},
    }
    ended = await run_team(tmp_path, config_from_data(data, "test", environ={}), environ=environ)
    (won,) = ended.of(WinnerChosen)
    assert (won.outcome, won.challenge) == ("tested", None)
    assert [one.kind for one in ended.of(StageOpened)] == ["test"]


@pytest.mark.parametrize(
    ("kind", "challenge"), [("refute", "not_challenged"), ("settle", "not_challenged"), ("revise", "refuted")]
)
async def test_finished_in_a_stage_the_winner_stands_and_what_is_proven_is_told(
    tmp_path: Path, doubling: Path, environ: dict[str, str], kind: str, challenge: str
) -> None:
    hang: list[Step] = [{"hang": True}]
    parts = {"refute": [OBJECTION], "settle": [settle("6")], "revise": list[Step]()}
    for later in (one for one in parts if one == kind or (kind == "settle" and one == "revise")):
        parts[later] = hang
    ended = await challenged(
        tmp_path, doubling, environ, parts["revise"], parts["refute"], parts["settle"], act=FinishIn(kind)
    )
    assert came_to(ended) == (challenge, "adds")


class FinishIn(Act):
    """Finish the run in the first round of a kind."""

    def __init__(self, kind: str) -> None:
        super().__init__(RoundStarted, "finish_now")
        self._kind = kind

    def heard(self, record: Any) -> None:
        if getattr(record.event, "kind", None) == self._kind and isinstance(record.event, RoundStarted):
            super().heard(record)
