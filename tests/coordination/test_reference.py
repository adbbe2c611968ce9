"""The state machine does what the documents say: a second program, written from them, agrees on random histories. And a
journal that ends anywhere leads to what was recorded next.

    python -m tests.coordination.test_reference 20000 [SEED]    # the whole; the suite plays a short form
"""

import sys
from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest

from massgen_mcp.coordination.agent_view import AgentView
from massgen_mcp.coordination.deciding import NextStep
from massgen_mcp.coordination.guidance import Violation, Work
from massgen_mcp.coordination.procedures import next_step
from massgen_mcp.coordination.state import Coordination, Rules
from massgen_mcp.coordination.testing import due_runs
from massgen_mcp.events.agent_work import RoundStarted
from massgen_mcp.events.coordination import (
    AgentDropped,
    AnswerSubmitted,
    CheckFinished,
    FilesChecked,
    FirstAnswersClosed,
    StageOpened,
    WinnerChosen,
)
from massgen_mcp.events.parts import Changes, CheckOutcome, Event, WrittenTest
from massgen_mcp.events.run import BudgetReached, FinishRequested
from tests.coordination.reference import FallsOut, Label, OneTest, Reference, Settings, Stage, Won, name, write_text
from tests.coordination.test_every_procedure import is_due

SHORT = 1_000
MOST = 2_000
"""Events of a history; none of them needs a tenth of these."""

pytestmark = pytest.mark.uncounted

KINDS = {"test": "tests", "vote": "vote"}
RESULTS = {"passed": "passed", "failed": "failed", "not run": "not_run", "flaky": "failed"}


def label_of(text: str) -> Label:
    agent, number = text.removeprefix("agent").split(".")
    return int(agent) - 1, int(number)


@dataclass
class History:
    """One random history, put to both."""

    seed: int
    told: list[str] = field(default_factory=list[str])
    events: list[Event] = field(default_factory=list[Event])
    in_round: set[int] = field(default_factory=set[int])
    made: int = 0

    def __post_init__(self) -> None:
        self.random = random = Random(self.seed)
        size = random.randint(1, 6)
        policy = random.choice((None, None, "informative", "required", "goal"))
        self.settings = Settings(
            agents=size,
            run_id=f"run-{self.seed}",
            answers_each=random.randint(1, 3),
            early=random.choice(("off", "proven", "majority")),
            by_tests=size > 2 and random.random() < 0.5,
            checks=policy is not None,
            required=policy in ("required", "goal"),
        )
        self.reference = Reference(self.settings)
        self.names = [f"agent_{'abcdef'[place]}" for place in range(size)]
        rules = Rules(
            max_answers=self.settings.answers_each,
            early_decision=self.settings.early,
            seed=self.settings.run_id,
            checks=policy,
            decide="checks" if self.settings.by_tests else "vote",
        )
        self.state = Coordination.begin(tuple(self.names), rules)
        self.mischief = random.choice((0.0, 0.02, 0.1))
        """How often an agent falls out, or the run is cut short, at each action."""
        self.slow = random.choice((None, None, size - 1))
        """The agent whose first answer takes as long as many actions of the others."""
        self.repeating = random.choice((0.0, 0.0, 0.3, 1.0))
        """How often an agent that votes only writes its own answer once more."""

    # -- both sides say the same ------------------------------------------------------------------------------------

    def compare(self) -> None:
        """Who is asked for what, and what is on the ballot."""
        for place, agent in enumerate(self.names):
            if place in self.in_round:
                continue
            duty = AgentView(self.state, agent).get_duty()
            asked = self.reference.asked(place)
            assert (asked is not None) == isinstance(duty, Work), self.said(f"{agent}: {asked} against {duty}")
            if isinstance(duty, Work) and asked != "answer":
                shown = {label_of(entry.label) for entry in duty.ballot.entries}
                assert shown == self.reference.ballot, self.said(f"{agent} is shown {shown}")
        votable = {label for label in self.reference.standing if label not in self.reference.out}
        assert votable == {label_of(one) for one in self.state.standing if one not in self.state.checks.excluded}, (
            self.said("")
        )

    def happen(self, event: Event) -> None:
        """After an event, whatever is due without anybody's doing; both name it."""
        self._record(event)
        while True:
            due, expected = next_step(self.state), self.reference.due()
            assert self.as_reference(due) == expected, self.said(f"due is {due}, and not {expected}")
            if due is None or expected is None:
                break
            self.told.append(repr(expected))
            match expected:
                case Won():
                    self.reference.won = expected
                case Stage():
                    self.reference.stages.append(expected)
                case FallsOut():
                    self.in_round.discard(expected.agent)
                    self.reference.drop(expected.agent)
            self._record(due)
        self.compare()

    def _record(self, event: Event) -> None:
        self.events.append(event)
        self.state = self.state.after(event)  # type: ignore[arg-type]

    def killed_anywhere(self) -> None:
        """At every prefix of the journal, what is due is what was recorded next; and in the end all is known again."""
        state = Coordination.begin(tuple(self.names), self.state.rules)
        for event, following in zip(self.events, [*self.events[1:], None], strict=True):
            state = state.after(type(event).model_validate_json(event.model_dump_json()))  # type: ignore[arg-type]
            recorded = following if following is not None and is_due(following) else None
            assert next_step(state) == recorded, self.said(f"a journal that ends with {event}")
        assert state == self.state, self.said("the state differs")

    def as_reference(self, due: NextStep) -> Stage | Won | FallsOut | None:
        match due:
            case None:
                return None
            case AgentDropped():
                return FallsOut(self.names.index(due.agent))
            case WinnerChosen():
                assert self.names[label_of(due.label)[0]] == due.agent
                return Won(label_of(due.label), due.outcome)
            case StageOpened():
                asked = {"tied": "run-off", "still_tied": "tie"}.get(due.because, KINDS.get(due.kind))
                agents = tuple(self.names.index(agent) for agent in due.agents)
                about = tuple(map(label_of, due.subjects))
                return Stage(asked, about if asked == "tie" else tuple(sorted(about)), agents)  # type: ignore[arg-type]

    def said(self, what: str) -> str:
        lines = "\n".join(self.told)
        return f"seed {self.seed}, {self.settings}: {what}\nafter\n{lines}"

    # -- what happens at random ---------------------------------------------------------------------------------------

    def run(self) -> "History":
        self.compare()
        while self.state.winner is None and self.state.live:
            assert len(self.events) < MOST, self.said("it does not end")
            if not self._somebody_acts() and not self._something_runs():
                assert self.state.unanswered, self.said("nothing can happen any more")
                if not self.state.stragglers_given_up and (self.slow is None or self.state.answered):
                    self._close()
                else:
                    assert self.slow is not None, self.said("nothing can happen any more")
        return self

    def _somebody_acts(self) -> bool:
        asked = [p for p in range(len(self.names)) if p in self.in_round or self.reference.asked(p) is not None]
        live = [place for place in asked if place not in self.reference.dropped and not self._is_held_up(place)]
        if not live:
            return False
        place = self.random.choice(live)
        dice = self.random.random()
        if dice < self.mischief:
            self._mischief(place)
        elif place not in self.in_round or dice < 0.2:
            self._show(place)
        else:
            self._act(place)
        return True

    def _is_held_up(self, place: int) -> bool:
        """Whether the slow agent is still at its first answer, and does not come to an end of it now."""
        return place == self.slow and not self.reference.written_by(place) and self.random.random() < 0.9

    def _show(self, place: int) -> None:
        self._check()
        agent = self.names[place]
        ballot = self.state.ballot(agent)
        entries = ballot.entries if self.state.seats[agent].answers else ()
        self.in_round.add(place)
        self.reference.show(place)
        self.told.append(f"{agent} is shown {[entry.label for entry in entries]}")
        self.happen(RoundStarted(agent=agent, round=1, revision=self.state.revision if entries else 0, ballot=entries))

    def _mischief(self, place: int) -> None:
        which = self.random.randint(0, 5)
        if which == 0:
            self.told.append("finish")
            self.reference.finish = True
            self.happen(FinishRequested())
        elif which == 1:
            self.told.append("the budget is reached")
            self.reference.budget_reached = True
            self.happen(BudgetReached(agent=self.names[place], message=""))
        elif which == 2 and self.state.answered and self.state.unanswered and not self.state.stragglers_given_up:
            self._close()
        else:
            self.told.append(f"{self.names[place]} falls out")
            self.in_round.discard(place)
            self.reference.drop(place)
            self.happen(AgentView(self.state, self.names[place]).drop("timeout", ""))

    def _close(self) -> None:
        self.told.append("first answers are closed")
        self.reference.first_answers_closed = True
        self.happen(FirstAnswersClosed(awaited=self.state.unanswered))

    def _act(self, place: int) -> None:
        stage = self.state.stage
        dice = self.random.random()
        answered = bool(self.reference.written_by(place))
        writes = stage is not None and stage.kind == "test" and place not in self.reference.tests
        if answered and writes and dice < 0.9:
            self._write_tests(place)
        elif not answered or dice < 0.25:
            self._answer(place)
        else:
            self._vote(place)

    def _answer(self, place: int) -> None:
        agent = self.names[place]
        copied = self.random.random() < 0.1 and self.reference.answers
        content = self.random.choice([*self.reference.answers.values()]) if copied else write_text(self.made)
        self.made += 1
        files = f"tree {self.random.randint(0, 3)}" if self.settings.by_tests else None
        pays = self.random.random() > 0.2
        verdict = AgentView(self.state, agent).answer(content, can_pay_votes=pays)
        self.reference.unpaid = set() if pays else {place}
        self.told.append(f"{agent} answers {content!r} with {files}, {'with' if pays else 'without'} money for votes")
        assert self.reference.answer(place, content, files) == (not isinstance(verdict, Violation)), self.said(
            f"{verdict}"
        )
        if isinstance(verdict, AnswerSubmitted):
            changes = None if files is None else Changes(tree=files)
            self.in_round.discard(place)
            if place in self.reference.late:  # rounds that were about something else are over
                self.in_round -= {one for one in self.in_round if self.reference.written_by(one)}
            self.happen(verdict.model_copy(update={"changes": changes}))
        elif verdict.code == "too_late":
            self.in_round.discard(place)
            self.reference.drop(place)
            self.happen(AgentView(self.state, agent).drop("timeout", ""))

    def _vote(self, place: int) -> None:
        agent = self.names[place]
        shown = self.state.seats[agent].shown
        entries = shown.entries if shown else ()
        if not entries:
            assert isinstance(AgentView(self.state, agent).vote("agent1", "because"), Violation)
            return
        choice = self.random.choice(entries)
        own = [
            one for one in entries if label_of(one.label)[0] == place and one.label not in self.state.checks.excluded
        ]
        repeats = bool(own) and self.random.random() < self.repeating
        choice = own[0] if repeats else choice
        same = None if self.random.random() < 0.2 else [one for one in entries if self.random.random() < 0.4]
        verdict = AgentView(self.state, agent).vote(
            choice.name, "because", None if same is None else [one.name for one in same]
        )
        named = None if same is None else [label_of(one.label) for one in same]
        self.told.append(f"{agent} votes for {choice.label}, same as {named}{', by its own words' * repeats}")
        accepted = self.reference.vote(place, label_of(choice.label), named, repeats=repeats)
        assert accepted == (not isinstance(verdict, Violation)), self.said(f"{verdict}")
        if not isinstance(verdict, Violation):
            self.in_round.discard(place)
            self.happen(verdict.model_copy(update={"repeated": repeats}))

    def _write_tests(self, place: int) -> None:
        agent = self.names[place]
        written = [
            WrittenTest(title="a test", script=f"script {agent} {number}", expected="1")
            for number in range(self.random.randint(0, 3))
        ]
        trees = ["base", *(f"tree {number}" for number in range(4))]  # also those of answers that come late
        tests: list[OneTest] = []
        luck = self.random.random()
        outcomes: list[CheckFinished] = []
        for test in written:
            passes: dict[str, tuple[bool, ...] | None] = {}
            for tree in trees:
                first = self.random.random() < luck
                runs = tuple(first if self.random.random() < 0.95 else not first for _ in range(4))
                passes[tree] = (first, *runs) if self.random.random() < 0.97 else None
                outcomes.append(self._outcome(tree, test, passes[tree]))
            tests.append(OneTest(place, passes, test.script))
        verdict = AgentView(self.state, agent).submit_tests(written)
        self.told.append(f"{agent} writes {tests}")
        assert self.reference.write_tests(place, tests) == (not isinstance(verdict, Violation)), self.said(f"{verdict}")
        if not isinstance(verdict, Violation):
            self.in_round.discard(place)
            for event in outcomes:  # nobody knows of them before the tests are there
                self._record(event)
            self.happen(verdict)

    def _outcome(self, tree: str, test: WrittenTest, passes: tuple[bool, ...] | None, runs: int = 2) -> CheckFinished:
        known = {*(passes or ())[:runs]}
        result = "not_run" if passes is None else "passed" if known == {True} else "failed"
        outcome = CheckOutcome.model_validate(
            {
                "command": test.script,
                "expected": test.expected,
                "result": result,
                "how": "",
                "seconds": 1,
                "runs": runs,
                "flaky": len(known) == 2,
            }
        )
        return CheckFinished(tree=tree, outcome=outcome)

    def _something_runs(self) -> bool:
        due = due_runs(self.state)
        expected = self.reference.to_run_again()
        assert {(run.test.script, run.tree) for run in due} == expected, self.said("other tests have to run again")
        if due and self.reference.live and self.random.random() < self.mischief:
            self._mischief(self.random.choice(self.reference.live))
            return True
        if due:
            run = self.random.choice(due)
            tests = [test for written in self.reference.tests.values() for test in written]
            passes = next(test.passes[run.tree] for test in tests if test.name == run.test.script)
            self.reference.further_runs[run.test.script, run.tree] += 1
            runs = 2 + self.reference.further_runs[run.test.script, run.tree]
            self.told.append(f"{run.test.script} runs on {run.tree} for the {runs}th time")
            self.happen(self._outcome(run.tree, run.test, passes, runs))
            return True
        if not self.settings.checks or not self.state.checks.is_pending:
            return False
        self._check()
        return True

    def _check(self) -> None:
        """A ballot waits for the checks of its answers."""
        if not self.settings.checks:
            return
        while missing := self.state.checks.unchecked:
            label = label_of(missing[0])
            found = {f"check {n}": self.random.choice((*RESULTS, "passed", "failed")) for n in range(2)}
            self.reference.checked[label] = found
            self.told.append(f"checks of {name(label)}: {found}")
            outcomes = tuple(
                CheckOutcome.model_validate(
                    {
                        "command": check,
                        "result": RESULTS[one],
                        "how": "",
                        "seconds": 1,
                        "runs": 2,
                        "flaky": one == "flaky",
                    }
                )
                for check, one in found.items()
            )
            self.happen(FilesChecked(subject="answer", label=missing[0], outcomes=outcomes))


def play(seeds: range) -> Counter[str]:
    """How the histories ended, where both sides agree; else an AssertionError that tells the history."""
    ended: Counter[str] = Counter()
    for seed in seeds:
        history = History(seed).run()
        history.killed_anywhere()
        for stage in history.reference.stages:
            ended[f"stage: {stage.asked}"] += 1
        ended["late answers that reopened a decision"] += len(history.reference.late)
        won = history.reference.won
        ended[won.outcome if won else "nobody"] += 1
    return ended


def test_a_second_program_agrees_on_random_histories_and_a_journal_that_ends_anywhere_goes_on_as_recorded() -> None:
    ended = play(range(SHORT))
    voted = {"consensus", "majority", "plurality", "tie_broken"}
    reached = {*voted, "checked", "tested", "same_files", "single", "single_survivor"}
    stages = {f"stage: {one}" for one in ("tests", "vote", "run-off", "tie")}
    assert {*ended} >= {*reached, *stages, "best_so_far", "nobody"}


if __name__ == "__main__":
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for what, times in sorted(play(range(first, first + count)).items()):
        print(f"{times:>8,}  {what}")
    print(f"{count:>8,}  histories: agreed on in every step; what was due at every prefix is what was recorded")
