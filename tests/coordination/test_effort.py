"""Who is asked for an answer, and when: one after the other where a check tells, else in stages by an exact rule."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise, product
from random import Random

import pytest

from massgen_mcp.coordination.agent_view import AgentView
from massgen_mcp.coordination.effort import batch, enough, overturn
from massgen_mcp.coordination.evidence import passes
from massgen_mcp.coordination.guidance import Violation, Work
from massgen_mcp.coordination.procedures import next_step
from massgen_mcp.coordination.state import Coordination, Rules
from massgen_mcp.coordination.testing import due_runs
from massgen_mcp.events.agent_work import RoundStarted
from massgen_mcp.events.coordination import (
    CheckFinished,
    FilesChecked,
    FirstAnswersClosed,
    StageOpened,
    VoteCast,
    WinnerChosen,
)
from massgen_mcp.events.parts import Changes, CheckOutcome, ChecksPolicy, WrittenTest
from massgen_mcp.events.record import AnyEvent
from massgen_mcp.events.run import AttemptStarted, BudgetReached, FinishRequested
from tests.coordination.reference import write_text
from tests.coordination.seeds import SEEDS

pytestmark = pytest.mark.uncounted


def by_draws(lead: int, rival: int, left: int) -> Fraction:
    """The chance that the rival is ahead in the end, one answer after the other: the more a camp has, the likelier."""
    if not left:
        return Fraction(rival > lead)
    share = Fraction(rival + 1, lead + rival + 2)
    return share * by_draws(lead, rival + 1, left - 1) + (1 - share) * by_draws(lead + 1, rival, left - 1)


def test_the_chance_of_an_overturn_is_that_of_answers_drawn_one_by_one() -> None:
    for lead, rival, left in product(range(7), range(7), range(8)):
        assert overturn(lead, rival, left) == by_draws(lead, rival, left), (lead, rival, left)
    assert overturn(2, 0, 3) == Fraction(1, 20)


def test_a_stage_asks_the_fewest_that_could_be_enough() -> None:
    assert [batch(0, 0, most) for most in (3, 4, 5, 7)] == [2, 2, 2, 3]
    assert (batch(1, 1, 3), batch(2, 1, 2)) == (2, 1)
    for lead, rival, left in product(range(7), range(7), range(1, 8)):
        asked = batch(lead, rival, left)
        assert not any(enough(lead + fewer, rival, left - fewer) for fewer in range(1, asked))
        assert 1 <= asked <= left


@pytest.mark.parametrize(("most", "first", "bound"), [(3, 2, 0.0), (4, 2, 0.0), (5, 2, 0.0179), (7, 3, 0.0037)])
def test_fewer_answers_cost_no_more_than_the_bound_against_counting_all(most: int, first: int, bound: float) -> None:
    """Of two answers the right one comes with the same chance from every agent, whatever that chance is."""

    def leads(answers: tuple[bool, ...]) -> Fraction:
        """How likely the right one leads; half where it is a tie."""
        right = sum(answers)
        return Fraction(right * 2 > len(answers)) + Fraction(right * 2 == len(answers)) / 2

    def in_stages(answers: tuple[bool, ...]) -> Fraction:
        asked = first
        while asked < most:
            right = sum(answers[:asked])
            lead, rival = max(right, asked - right), min(right, asked - right)
            if enough(lead, rival, most - asked):
                break
            asked += batch(lead, rival, most - asked)
        return leads(answers[:asked])

    differing = [(sum(one), leads(one) - in_stages(one)) for one in product((True, False), repeat=most)]
    worst = max(
        sum(float(lost) * p**right * (1 - p) ** (most - right) for right, lost in differing)
        for p in (place / 1000 for place in range(1001))
    )
    assert bound * 0.97 <= worst <= bound + 5e-5


@dataclass
class Play:
    """A random coordination, of which mostly not all agents are asked at once: with files, checks, tests, fallen-out
    agents and early ends. Agents act in random order, and only as their duty says.
    """

    seed: int
    events: list[AnyEvent] = field(default_factory=list[AnyEvent])
    in_round: dict[str, Work] = field(default_factory=dict[str, Work])

    def __post_init__(self) -> None:
        draw = self.random = Random(self.seed)
        agents = tuple(f"agent_{letter}" for letter in "abcdefghi"[: draw.randint(1, 9)])
        checks: ChecksPolicy | None = draw.choice((None, "informative", "required", "goal"))
        self.rules = Rules(
            max_answers=draw.randint(1, 3),
            early_decision=draw.choice(("off", "proven", "majority")),
            seed=str(self.seed),
            checks=checks,
            decide=draw.choice(("vote", "vote", "checks")),
            effort=draw.choice(("low", "auto", "auto", "high")),
            max_agents=draw.choice((None, None, 1, 3, 5)),
            order=draw.choice(("random", "listed")),
        )
        self.state = Coordination.begin(agents, self.rules)
        self.contents = draw.choice((1, 2, 6))
        """So many different answers there are."""
        if checks is not None:
            self.happen(FilesChecked(subject="base", outcomes=self._outcomes()))
        self.happen(AttemptStarted(attempt=1))

    def happen(self, event: AnyEvent) -> None:
        self.events.append(event)
        self.state = self.state.after(event)
        while due := next_step(self.state):
            self.events.append(due)
            self.state = self.state.after(due)

    def run(self) -> "Play":
        while self.state.winner is None and self.state.live:
            before = len(self.events)
            self._check()
            for agent in self.random.choices(self.state.live, k=400):
                self._move(agent)
                if len(self.events) > before or self.state.winner is not None:
                    break
            else:
                assert self.state.unanswered, f"seed {self.seed}: nobody can move and nobody is waited for"
                self.happen(FirstAnswersClosed(awaited=self.state.unanswered))
            assert len(self.events) < 2_000, f"seed {self.seed}: it does not end"
        return self

    def _move(self, agent: str) -> None:
        duty = AgentView(self.state, agent).get_duty()
        if agent in self.in_round:
            self._act(agent, self.in_round[agent])
        elif isinstance(duty, Work) and not (self.state.closing and not duty.ballot.entries):
            self.in_round[agent] = duty
            shown = duty.ballot
            self.happen(RoundStarted(agent=agent, round=1, revision=shown.revision, ballot=shown.entries))
        elif isinstance(duty, Work):
            self.happen(AgentView(self.state, agent).drop("budget", "nothing is left"))

    def _act(self, agent: str, duty: Work) -> None:
        dice = self.random.random()
        if dice < 0.02:
            self.happen(BudgetReached(agent=agent, message=""))
        elif dice < 0.03:
            self.happen(FinishRequested())
        if self.state.winner is not None or agent not in self.state.live:
            return
        del self.in_round[agent]
        if dice > 0.95:
            self.happen(AgentView(self.state, agent).drop("provider_error", "bad luck"))
            return
        done: AnyEvent | Violation
        if duty.kind == "test":
            tests = [
                WrittenTest(title="t", script=f"{agent} {n}", expected="x") for n in range(self.random.randint(0, 2))
            ]
            done = AgentView(self.state, agent).submit_tests(tests)
        elif not duty.ballot.entries or (dice < 0.2 and AgentView(self.state, agent).may_answer()):
            done = self._answered(agent)
        else:
            names = [entry.name for entry in duty.ballot.entries]
            same = self.random.choice(([], names, self.random.sample(names, 1)))
            done = AgentView(self.state, agent).vote(self.random.choice(names), "because", same)
        if not isinstance(done, Violation):
            self.happen(done)

    def _answered(self, agent: str) -> AnyEvent | Violation:
        content = self.random.randint(1, self.contents)
        done = AgentView(self.state, agent).answer(write_text(len(self.events)))
        changes = None if self.rules.checks is None else Changes(tree=f"tree {content}")
        return done if isinstance(done, Violation) else done.model_copy(update={"changes": changes})

    def _check(self) -> None:
        while self.state.winner is None:
            if unchecked := self.state.checks.unchecked:
                self.happen(FilesChecked(subject="answer", label=unchecked[0], outcomes=self._outcomes()))
            elif again := self.state.checks.to_repeat:
                label, commands = self.random.choice([*again.items()])
                outcomes = tuple(
                    self._second_run(one) if one.command in commands else one
                    for one in self.state.evidence[label].outcomes
                )
                self.happen(self.state.evidence[label].model_copy(update={"outcomes": outcomes}))
            elif due := due_runs(self.state):
                outcome = outcome_of(due[0].test.script, self.random.choice(("passed", "failed")), expected="x")
                outcome = outcome if due[0].before is None else due[0].before.with_another_run(outcome)
                self.happen(CheckFinished(tree=due[0].tree, outcome=outcome))
            else:
                return

    def _second_run(self, first: CheckOutcome) -> CheckOutcome:
        differs = self.random.random() < 0.2
        return first.with_another_run(first.model_copy(update={"result": "failed" if differs else first.result}))

    def _outcomes(self) -> tuple[CheckOutcome, ...]:
        return tuple(outcome_of(f"check {n}", self.random.choice(("passed", "failed", "failed"))) for n in range(2))


def outcome_of(command: str, result: str, expected: str | None = None) -> CheckOutcome:
    how = {"command": command, "result": result, "expected": expected, "how": "", "seconds": 1}
    return CheckOutcome.model_validate(how)


@pytest.fixture(scope="module")
def plays() -> list[Play]:
    gc.disable()  # nothing of a play is garbage, and looking for some takes a third of the time
    try:
        return [Play(seed).run() for seed in range(SEEDS)]
    finally:
        gc.enable()


def prefixes(play: Play) -> Iterator[tuple[Coordination, AnyEvent | None]]:
    """The state after each event, folded from the events alone, and the next event."""
    state = Coordination.begin(tuple(play.state.seats), play.rules)
    for event, following in pairwise([*play.events, None]):
        assert event is not None
        state = state.after(event)
        yield state, following


def test_what_is_due_at_every_prefix_is_what_was_recorded_there(plays: list[Play]) -> None:
    for play in plays:
        for state, following in prefixes(play):
            recorded = following if isinstance(following, StageOpened | WinnerChosen) else None
            assert next_step(state) == recorded, f"seed {play.seed}"


def test_every_coordination_ends_with_a_winner_unless_everybody_fell_out(plays: list[Play]) -> None:
    for play in plays:
        state = play.state
        ended = state.winner is not None
        assert ended or not state.live, f"seed {play.seed}"
        if not ended and not state.closing:
            left = [agent for agent, seat in state.seats.items() if not seat.dropped]
            assert not left or len(state.answered) >= state.most_asked, f"seed {play.seed}"


def test_an_agent_that_was_not_asked_does_nothing_and_one_that_is_asked_sees_no_answer(plays: list[Play]) -> None:
    for play in plays:
        first: set[str] = set()
        for state, following in prefixes(play):
            if isinstance(following, RoundStarted):
                assert following.agent in state.asked, f"seed {play.seed}"
                assert following.agent in first or following.ballot == (), f"seed {play.seed}"
                first.add(following.agent)
            elif isinstance(following, StageOpened) and following.kind == "answer":
                assert not {*following.agents} & {*state.asked} or not state.stages, f"seed {play.seed}"


def test_no_more_agents_are_asked_than_may_be_but_in_place_of_those_that_fell_out(plays: list[Play]) -> None:
    for play in plays:
        lost = sum(seat.dropped is not None and not seat.answers for seat in play.state.seats.values())
        assert len(play.state.asked) <= play.state.most_asked + lost, f"seed {play.seed}"
        winner = play.state.winner
        if winner is not None and winner.asked is not None:
            assert (winner.asked, winner.of) == (len(play.state.asked), play.state.most_asked)


def test_where_a_check_tells_one_agent_works_at_a_time_until_one_passes_it(plays: list[Play]) -> None:
    passed = 0
    for play in plays:
        if not play.state.checks.telling or not any(stage.kind == "answer" for stage in play.state.stages):
            continue
        for state, _ in prefixes(play):
            assert len(state.unanswered) <= 1 or not state.stages, f"seed {play.seed}"
        winner = play.state.winner
        evidence = play.state.evidence
        passing = [label for label in evidence if passes(play.state.base_checks, evidence, label)]
        if winner is not None and winner.outcome == "checked" and play.rules.decide == "vote":
            passed += 1
            assert winner.label in passing, f"seed {play.seed}"  # others if a check was found flaky since
            assert all(
                outcome.runs == 2
                for outcome in play.state.evidence[winner.label].outcomes
                if outcome.command in play.state.checks.telling
            )
            assert not any(isinstance(event, VoteCast) for event in play.events), f"seed {play.seed}"
        elif winner is not None and winner.outcome != "best_so_far":
            assert len(passing) != 1 or play.rules.decide != "vote", f"seed {play.seed}"
    assert passed > SEEDS // 40


def test_agents_that_say_the_same_end_a_coordination_without_the_others(plays: list[Play]) -> None:
    agreed = [play for play in plays if play.state.winner and play.state.winner.outcome == "agreed"]
    assert len(agreed) > SEEDS // 100
    for play in agreed:
        votes = [event for event in play.events if isinstance(event, VoteCast)]
        assert play.state.winner is not None
        winner, last = play.state.winner, votes[-1]
        assert winner.label == last.label
        assert {last.label, *(last.same_as or ())} == {*play.state.standing}, f"seed {play.seed}"
        left = min(play.state.most_asked - len(play.state.standing), len(play.state.seats) - len(play.state.asked))
        assert play.state.closing or enough(len(play.state.standing), 0, max(0, left)), f"seed {play.seed}"


def test_with_high_effort_and_everybody_asked_no_stage_says_so(plays: list[Play]) -> None:
    whole = [play for play in plays if play.rules.effort == "high" and play.rules.max_agents is None]
    assert len(whole) > SEEDS // 40
    for play in whole:
        assert not any(isinstance(event, StageOpened) and event.kind == "answer" for event in play.events)
        assert play.state.winner is None or play.state.winner.asked is None


def test_where_all_that_answered_fell_out_before_they_were_compared_one_more_is_asked_and_no_more() -> None:
    rules = Rules(seed="test", effort="low", order="listed")
    state = Coordination.begin(tuple(f"agent_{letter}" for letter in "abcde"), rules).after(AttemptStarted(attempt=1))

    def happens(event: AnyEvent) -> list[tuple[str, ...]]:
        """Who is asked then, stage by stage; never more stages than agents."""
        nonlocal state
        asked: list[tuple[str, ...]] = []
        state = state.after(event)
        while (due := next_step(state)) and isinstance(due, StageOpened) and len(asked) < 5:
            asked.append(due.agents)
            state = state.after(due)
        return asked

    assert happens(FirstAnswersClosed(awaited=())) == [("agent_a", "agent_b")]
    for agent in ("agent_a", "agent_b"):
        answer = AgentView(state, agent).answer(f"by {agent}")
        assert not isinstance(answer, Violation)
        happens(answer)
    reader = state.stages[-1].agents[0]
    (other,) = {"agent_a", "agent_b"} - {reader}
    assert happens(AgentView(state, reader).drop("auth", "")) == [(other,)]
    assert happens(AgentView(state, other).drop("auth", "")) == [("agent_c",)]
