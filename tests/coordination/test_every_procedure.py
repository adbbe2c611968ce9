"""Random coordinations by every procedure: wherever a journal ends, what is due is what was recorded there.

python -m tests.coordination.test_every_procedure 10000 [SEED]    # the whole; the suite plays a short form
"""

import sys
from collections import Counter
from random import Random

import pytest

from massgen_mcp.coordination.agent_view import AgentView
from massgen_mcp.coordination.deciding import REPEATED_OWN
from massgen_mcp.coordination.guidance import Violation, Wait, Work
from massgen_mcp.coordination.procedures import next_step
from massgen_mcp.coordination.state import Coordination, Rules
from massgen_mcp.coordination.testing import due_runs
from massgen_mcp.coordination.written_tests import BEFORE_ANSWERS
from massgen_mcp.events.agent_work import RoundStarted
from massgen_mcp.events.coordination import (
    AgentDropped,
    AnswerSubmitted,
    CheckFinished,
    FilesChecked,
    FirstAnswersClosed,
    StageOpened,
    VoteCast,
    WinnerChosen,
    WrittenTestsSubmitted,
)
from massgen_mcp.events.parts import Changes, Claim, Decide, Event, WrittenTest
from massgen_mcp.events.record import AnyEvent
from massgen_mcp.events.run import AttemptStarted, BaseTaken, BudgetRaised, BudgetReached, FinishRequested
from tests.coordination.reference import write_text
from tests.coordination.test_effort import Play as Staged
from tests.coordination.test_effort import outcome_of

SHORT = 1_500
MOST = 2_000
"""Events of a coordination; none needs a tenth of these."""
PROCEDURES: tuple[Decide, ...] = ("auto", "checks", "synthesise", "judge", "vote")

pytestmark = pytest.mark.uncounted


class Play(Staged):
    """By any procedure, with agents that are late or fall out in each stage, and ends in their midst."""

    def __post_init__(self) -> None:
        draw = self.random = Random(self.seed)
        size = draw.randint(1, 6)
        agents = tuple(f"agent_{letter}" for letter in "abcdef"[:size])
        decide = draw.choice(PROCEDURES if size > 2 else PROCEDURES[:-2])
        vendors = draw.choice(("xxxxxx", "xyzxyz", "xyxyxy", "uvwxyz"))
        self.contents = draw.choice((1, 2, 6))
        self.mischief = draw.choice((0.0, 0.02, 0.1))
        """How often an agent falls out, or the run is cut short, when somebody acts."""
        self.luck = draw.random()
        """How often a script prints what is expected."""
        self.slow = draw.choice((None, None, agents[0]))
        """The agent whose first answer takes as long as many actions of the others."""
        self.repeating = draw.choice((0.0, 0.0, 0.3, 1.0))
        """How often an agent that is to vote only writes its own answer once more."""
        self.rules = Rules(
            max_answers=draw.randint(1, 3),
            seed=str(self.seed),
            checks=draw.choice((None, None, "informative", "required", "goal")),
            decide=decide,
            effort=draw.choice(("low", "auto", "high", "high")),
            max_agents=draw.choice((None, None, 3)),
            writer=draw.choice((None, agents[-1])),
            judge=agents[-1] if decide == "judge" else None,
            write_check=draw.random() < 0.3,
            can_run=draw.random() < 0.8,
            vendors=dict(zip(agents, vendors, strict=False)),
            fallback_vendors=draw.choice(({}, dict.fromkeys(agents[:2], "z"), dict.fromkeys(agents[:2], "x"))),
        )
        self.state = Coordination.begin(agents, self.rules)
        self.happen(BaseTaken(tree="tree 0"))
        if self.rules.checks is not None:
            self.happen(FilesChecked(subject="base", outcomes=self._outcomes()))
        self.happen(AttemptStarted(attempt=1))

    def run(self) -> "Play":
        while self.state.winner is None and self.state.live:
            assert len(self.events) < MOST, f"seed {self.seed}: it does not end"
            agents = [agent for agent, seat in self.state.seats.items() if not seat.dropped]
            if any(self._moves(agent) for agent in self.random.sample(agents, len(agents))) or self._runs():
                continue
            assert self.state.unanswered or self.slow, f"seed {self.seed}: nobody can move and nobody is waited for"
            assert not self.state.stragglers_given_up or self.slow, f"seed {self.seed}: nobody can move"
            if self.state.stragglers_given_up or not (self.state.unanswered and self.state.answered):
                continue
            self.happen(FirstAnswersClosed(awaited=self.state.unanswered))
        return self

    def _moves(self, agent: str) -> bool:
        """Whether anything was to be done meanwhile, or by the agent."""
        if self.random.random() < 0.3 and self._runs():
            return True
        seat, works = self.state.seats[agent], isinstance(AgentView(self.state, agent).get_duty(), Work)
        if agent == self.slow and not seat.answers and self.random.random() < 0.9:
            return False
        if self.state.winner is not None or seat.dropped or not (agent in self.in_round or works):
            return False
        self._move(agent)
        return True

    def _runs(self) -> bool:
        before = len(self.events)
        self._check()
        return len(self.events) > before

    def _check(self) -> None:
        """One of the checks or scripts that are due, if there is one; or an end that somebody wants meanwhile."""
        if (due := due_runs(self.state)) and self.state.winner is None:
            if self.random.random() < self.mischief / 4:
                self.happen(self.random.choice((FinishRequested(), BudgetReached(agent=due[0].test.title, message=""))))
                return
            run = self.random.choice(due)
            result = "passed" if self.random.random() < self.luck else "failed"
            result = "not_run" if self.random.random() < 0.03 else result
            outcome = outcome_of(run.test.script, result, expected=run.test.expected)
            outcome = outcome if run.before is None else run.before.with_another_run(outcome)
            self.happen(CheckFinished(tree=run.tree, outcome=outcome))
        else:
            super()._check()

    def _act(self, agent: str, duty: Work) -> None:
        if self.random.random() < self.mischief:
            self.happen(self._mischief(agent))
            return
        del self.in_round[agent]
        if AgentView(self.state, agent).is_overtaken(duty.kind):
            return
        done = self._done(agent, duty)
        if not isinstance(done, Violation):
            self.happen(done)
        elif done.code == "too_late":
            self.happen(AgentView(self.state, agent).drop("timeout", ""))

    def _mischief(self, agent: str) -> AnyEvent:
        match self.random.randint(0, 5):
            case 0:
                return FinishRequested()
            case 1:
                return BudgetReached(agent=agent, message="")
            case 2 if self.state.closing:
                return BudgetRaised(control=1, max_usd=9)
            case _:
                self.in_round.pop(agent, None)
                return AgentView(self.state, agent).drop("provider_error", "bad luck")

    def _done(self, agent: str, duty: Work) -> AnyEvent | Violation:
        draw, names = self.random, [entry.name for entry in duty.ballot.entries]
        able = self.state.checks.get_votable(duty.ballot).entries
        own = [entry.name for entry in able if self.state.author(entry.label) == agent]
        match duty.kind:
            case "confirm":
                return AgentView(self.state, agent).submit_outputs(draw.choice((["x"], ["x"], ["y"], [])))
            case "test" | "check":
                numbers = range(draw.randint(0, 3))
                tests = [WrittenTest(title="t", script=f"{agent} {n}", expected="x") for n in numbers]
                return AgentView(self.state, agent).submit_tests(tests)
            case "synthesise":
                test = draw.choice((None, WrittenTest(title="c", script="claim", expected="x")))
                claims = AgentView(self.state, agent).cite_answers(
                    [Claim(text="c", answers=tuple(names), test=test)], refused_before=True
                )
                assert not isinstance(claims, Violation)
                return AgentView(self.state, agent).answer(f"written {len(self.events)}", claims)
            case _ if not names or (draw.random() < 0.2 and AgentView(self.state, agent).may_answer()):
                return self._answered(agent)
            case _ if own and draw.random() < self.repeating:
                done = AgentView(self.state, agent).vote(own[0], "no reason")
                return done.model_copy(update={"repeated": True}) if isinstance(done, VoteCast) else done
            case _:
                same = draw.choice(([], names, draw.sample(names, 1)))
                return AgentView(self.state, agent).vote(draw.choice(names), "because", same)

    def _answered(self, agent: str) -> AnyEvent | Violation:
        content = self.random.randint(0, self.contents)
        done = AgentView(self.state, agent).answer(write_text(len(self.events)))
        return (
            done
            if isinstance(done, Violation)
            else done.model_copy(update={"changes": Changes(tree=f"tree {content}")})
        )


def is_due(event: Event | AnyEvent) -> bool:
    """Check whether an event follows from the rules, and from no agent's doing."""
    unable = isinstance(event, AgentDropped) and event.message == REPEATED_OWN
    return unable or isinstance(event, StageOpened | WinnerChosen)


def check(play: Play) -> None:
    """Everything that has to hold of it."""
    state = Coordination.begin(tuple(play.state.seats), play.rules)
    acted = set[tuple[int, str]]()
    for place, event in enumerate(play.events):
        again = type(event).model_validate_json(event.model_dump_json())  # as it comes from a journal
        if isinstance(event, StageOpened):
            opened(state, event)
        if isinstance(event, RoundStarted | AnswerSubmitted | VoteCast) and event.agent == play.rules.judge:
            assert state.stage is not None
            assert state.stage.kind == "compare", "a judge judges, and nothing else"
        if isinstance(event, AnswerSubmitted | VoteCast | WrittenTestsSubmitted) and state.stage is not None:
            if isinstance(event, AnswerSubmitted) and not state.seats[event.agent].answers:
                acted.clear()  # a late answer: the decision begins anew
            else:
                assert (len(state.stages), event.agent) not in acted, "one accepted action for each agent in a stage"
                assert event.agent in state.stage.agents
                acted.add((len(state.stages), event.agent))
        state = state.after(again)
        following = play.events[place + 1] if place + 1 < len(play.events) else None
        recorded = following if following is not None and is_due(following) else None
        assert next_step(state) == recorded, f"after event {place}, {event}"
        assert recorded or not state.finish_requested or not state.answered or state.winner, (
            "who finishes waits for nothing"
        )
    assert state == play.state
    ended(state)


def opened(state: Coordination, stage: StageOpened) -> None:
    """What holds of every stage: who acts in it can, and it is about answers that stand."""
    judge = state.rules.judge
    assert all(not state.seats[agent].dropped for agent in stage.agents)
    if stage.kind in BEFORE_ANSWERS:
        assert not state.answered
        assert state.rules.write_check
        assert stage.agents != tuple(agent for one in state.stages for agent in one.agents)
    elif stage.kind != "answer":
        assert {*stage.subjects} <= {*state.standing}
        assert all(state.seats[agent].answers or agent == judge for agent in stage.agents)
    if stage.kind in ("compare", "test", "synthesise"):
        assert not state.finish_requested
        assert not state.closing
    if stage.kind == "test":
        assert state.rules.decide in ("auto", "checks")
        assert len({state.changed_tree(one) for one in stage.subjects}) > 1
        assert len(state.answered) > 2
    if stage.because == "still_tied":
        authors, rules = {state.author(one) for one in stage.subjects}, state.rules
        assert bool(authors & {*stage.agents}) <= stage.by_fallback
        camps = [camp.answers for label in stage.subjects for camp in state.count.camps if label in camp.answers]
        sides = [{rules.vendor(state.author(one)) for one in camp} for camp in camps]
        outside = not {state.author(one) for camp in camps for one in camp} & {*stage.agents}
        if stage.by_fallback:
            assert sum(rules.fallback_vendors[stage.agents[0]] in side for side in sides) != 1
        else:
            assert outside or not any(rules.vendor(stage.agents[0]) in side for side in sides)
    elif stage.kind == "compare":
        assert stage.agents == (judge,)
        assert all(state.rules.vendor(state.author(one)) != state.rules.vendor(judge or "") for one in stage.subjects)


def ended(state: Coordination) -> None:
    """It ends with a winner that somebody wrote, unless everybody fell out; nobody is asked for anything then."""
    winner = state.winner
    assert winner is not None or not state.live
    if winner is None:
        return
    assert not any(isinstance(AgentView(state, agent).get_duty(), Work | Wait) for agent in state.seats)
    wrote = [answer.label for answer in state.seats[winner.agent].answers]
    assert winner.label in wrote
    assert winner.label == state.label(winner.agent)
    assert winner.label not in state.checks.excluded
    text = state.synthesis
    assert winner.outcome != "synthesised" or (text is not None and text.label == winner.label)
    assert winner.outcome != "judged" or winner.agent != state.rules.judge


def play(seeds: range) -> Counter[str]:
    """How the coordinations ended; else an AssertionError that names the seed."""
    found: Counter[str] = Counter()
    for seed in seeds:
        try:
            one = Play(seed).run()
            check(one)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        winner = one.state.winner
        found.update({f"stage: {stage.kind}" for stage in one.state.stages})
        found[winner.outcome if winner else "nobody"] += 1
        found["late answers that reopened a decision"] += len(one.state.late)
    return found


def test_wherever_a_journal_ends_what_is_due_is_what_was_recorded_by_every_procedure() -> None:
    found = play(range(SHORT, 2 * SHORT))
    stages = ("answer", "test", "vote", "compare", "synthesise", "check", "confirm")
    reached = {f"stage: {kind}" for kind in stages}
    assert {*found} >= {*reached, "tested", "same_files", "synthesised", "judged", "checked", "agreed", "best_so_far"}


if __name__ == "__main__":
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for what, times in sorted(play(range(first, first + count)).items()):
        print(f"{times:>8,}  {what}")
    print(f"{count:>8,}  coordinations: what was due at every prefix is what was recorded")
