"""What follows from the checks of answers, one sentence each. Pure, like the rules."""

import pytest

from massgen_mcp.coordination.agent_view import AgentView
from massgen_mcp.coordination.deciding import best_so_far
from massgen_mcp.coordination.guidance import Violation, Wait, Work
from massgen_mcp.coordination.procedures import next_step
from massgen_mcp.coordination.state import Coordination, Rules
from massgen_mcp.events.agent_work import RoundStarted
from massgen_mcp.events.coordination import AnswerSubmitted, FilesChecked, VoteCast, WinnerChosen
from massgen_mcp.events.parts import CheckOutcome, ChecksPolicy
from massgen_mcp.events.run import AttemptStarted, FinishRequested

TRIO = ("agent_a", "agent_b", "agent_c")


def begin(policy: ChecksPolicy) -> Coordination:
    """Everybody has answered, and no check has run."""
    state = Coordination.begin(TRIO, Rules(seed="test", checks=policy))
    for agent in TRIO:
        state = answer(state, agent, f"the answer of {agent}")
    return state


def answer(state: Coordination, agent: str, content: str) -> Coordination:
    event = AgentView(state, agent).answer(content)
    assert isinstance(event, AnswerSubmitted)
    return state.after(event)


def checked(
    state: Coordination,
    agent: str,
    *results: bool | None,
    before: tuple[int, ...] = (),
    flaky: tuple[int, ...] = (),
    runs: int = 2,
) -> Coordination:
    """The checks of the agent's answer came out so (None: one did not run); those at the places `before` do not pass on
    the base either, those at the places `flaky` came out differently in two runs.
    """
    outcomes = tuple(
        CheckOutcome(
            command=f"check {place}",
            result="not_run" if passed is None else "passed" if passed else "failed",
            how="",
            seconds=1,
            runs=runs,
            flaky=place in flaky,
        )
        for place, passed in enumerate(results)
    )
    fails_before = tuple(f"check {place}" for place in before)
    return state.after(
        FilesChecked(
            subject="answer", agent=agent, label=state.label(agent), outcomes=outcomes, fails_before=fails_before
        )
    )


def show(state: Coordination, voter: str) -> Coordination:
    duty = AgentView(state, voter).get_duty()
    assert isinstance(duty, Work)
    return state.after(RoundStarted(agent=voter, round=2, revision=duty.ballot.revision, ballot=duty.ballot.entries))


def vote(state: Coordination, voter: str, author: str) -> VoteCast | Violation:
    """In a state in which the voter was shown its ballot."""
    shown = state.seats[voter].shown
    assert shown is not None
    name = next(entry.name for entry in shown.entries if state.author(entry.label) == author)
    return AgentView(state, voter).vote(name, "a reason")


def refused(state: Coordination, author: str) -> bool:
    verdict = vote(show(state, "agent_c"), "agent_c", author)
    if isinstance(verdict, Violation):
        assert verdict.code == "checks_fail"
        return True
    return False


def test_a_ballot_waits_for_the_checks_of_every_answer_on_it() -> None:
    state = begin("informative")
    assert AgentView(state, "agent_a").get_duty() == Wait()
    state = checked(checked(state, "agent_a", True), "agent_b", False)
    assert AgentView(state, "agent_a").get_duty() == Wait()
    assert isinstance(AgentView(checked(state, "agent_c", True), "agent_a").get_duty(), Work)


def test_without_checks_nobody_waits() -> None:
    state = Coordination.begin(TRIO, Rules(seed="test"))
    for agent in TRIO:
        state = answer(state, agent, f"the answer of {agent}")
    assert isinstance(AgentView(state, "agent_a").get_duty(), Work)


def test_a_new_answer_is_waited_for_again() -> None:
    state = begin("informative")
    for agent in TRIO:
        state = checked(state, agent, True)
    state = answer(show(state, "agent_a"), "agent_a", "a better one")
    assert AgentView(state, "agent_b").get_duty() == Wait()
    assert isinstance(AgentView(checked(state, "agent_a", True), "agent_b").get_duty(), Work)


def test_an_answer_whose_required_checks_fail_cannot_be_voted_for_while_another_one_passes() -> None:
    state = checked(checked(checked(begin("required"), "agent_a", True, False), "agent_b", True, True), "agent_c", True)
    assert refused(state, "agent_a")
    assert not refused(state, "agent_b")
    ballot = show(state, "agent_c").seats["agent_c"].shown
    assert ballot is not None
    assert {state.author(entry.label) for entry in state.checks.get_votable(ballot).entries} == {"agent_b", "agent_c"}


def test_where_every_answer_fails_every_answer_can_win() -> None:
    state = checked(checked(checked(begin("required"), "agent_a", False), "agent_b", False), "agent_c", False)
    assert not refused(state, "agent_a")


def test_an_answer_that_changes_no_files_excludes_nobody_and_is_not_excluded() -> None:
    state = checked(checked(checked(begin("required"), "agent_a", False), "agent_b"), "agent_c")
    assert not refused(state, "agent_a")
    passing = checked(state, "agent_b", True)
    assert refused(passing, "agent_a")
    assert not refused(passing, "agent_c")


def test_a_check_that_could_not_run_counts_neither_for_an_answer_nor_against_it() -> None:
    state = checked(checked(checked(begin("required"), "agent_a", False), "agent_b", None), "agent_c", None)
    assert not refused(state, "agent_a")
    assert not refused(checked(state, "agent_a", True), "agent_b")


RIGHT, BREAKING, WEAKENING = TRIO


@pytest.mark.parametrize("policy", ["required", "goal"])
@pytest.mark.parametrize(
    ("right", "breaking", "weakening", "before", "flaky"),
    [
        ((True,), (False,), (False,), (), ()),
        ((True,), (False,), (False,), (0,), ()),
        ((True, True), (True, False), (False, True), (0,), ()),
        ((True, False), (False, False), (False, False), (0, 1), ()),
        ((True, None), (False, None), (False, None), (0, 1), ()),
        ((True, False), (False, True), (False, True), (0,), (1,)),
        ((True, True, False, False), (True, False, False, True), (False, True, False, True), (0, 2), (3,)),
    ],
    ids=["sound base", "failing base", "each fails another", "impossible", "not run", "flaky", "all at once"],
)
def test_the_answer_that_passes_what_the_others_fail_is_the_only_one_that_can_win(
    policy: ChecksPolicy,
    right: tuple[bool | None, ...],
    breaking: tuple[bool | None, ...],
    weakening: tuple[bool | None, ...],
    before: tuple[int, ...],
    flaky: tuple[int, ...],
) -> None:
    state = begin(policy)
    for agent, results in zip(TRIO, (right, breaking, weakening), strict=True):
        state = checked(state, agent, *results, before=before, flaky=flaky)
    assert {state.author(label) for label in state.checks.excluded} == {BREAKING, WEAKENING}


@pytest.mark.parametrize(
    ("others", "what"),
    [((False, True), "each passes what the other one fails"), ((True, False), "both fail the same")],
)
def test_where_nothing_is_proven_every_answer_can_win(others: tuple[bool, bool], what: str) -> None:
    state = begin("goal")
    for agent, results in zip(TRIO, ((True, False), others, ()), strict=True):
        state = checked(state, agent, *results)
    assert state.checks.excluded == frozenset(), what


def test_what_tells_answers_apart_is_run_again_before_a_ballot_and_nothing_else_is() -> None:
    state = checked(begin("required"), RIGHT, True, True, None, runs=1)
    state = checked(state, BREAKING, True, False, None, runs=1)
    assert state.checks.to_repeat == {}, "an answer is still to be checked"
    state = checked(state, WEAKENING, True, False, False, runs=1)
    assert state.checks.to_repeat == dict.fromkeys(state.standing, ("check 1",))
    assert AgentView(state, RIGHT).get_duty() == Wait()
    for agent in TRIO:
        state = checked(state, agent, True, agent == RIGHT, None)
    assert isinstance(AgentView(state, RIGHT).get_duty(), Work)


def test_informative_checks_are_not_run_again() -> None:
    state = checked(checked(begin("informative"), RIGHT, True, runs=1), BREAKING, False, runs=1)
    assert checked(state, WEAKENING, True, runs=1).checks.to_repeat == {}


def test_informative_checks_exclude_nobody() -> None:
    state = checked(checked(checked(begin("informative"), "agent_a", False), "agent_b", True), "agent_c", True)
    assert not refused(state, "agent_a")


def test_an_excluded_answer_does_not_win_when_the_run_is_cut_short_either() -> None:
    state = checked(checked(begin("required"), "agent_a", False), "agent_b", True).after(FinishRequested())
    winner = next_step(state)
    assert isinstance(winner, WinnerChosen)
    assert winner.agent == "agent_b"
    assert best_so_far(begin("required")) is not None


def test_a_further_attempt_begins_without_the_evidence_of_the_one_before() -> None:
    state = checked(begin("required"), "agent_a", False).after(AttemptStarted(attempt=2))
    assert state.evidence == {}
    assert answer(state, "agent_a", "again").checks.unchecked == ("agent1.1",)
