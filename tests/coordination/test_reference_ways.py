"""The second program agrees on every way to decide: it hears random coordinations, and says what may come next.

python -m tests.coordination.test_reference_ways 20000 [SEED]    # the whole; the suite plays a short form
"""

import sys
from collections import Counter

import pytest

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
from massgen_mcp.events.record import AnyEvent
from massgen_mcp.events.run import AttemptStarted, BaseTaken, BudgetRaised, BudgetReached, FinishRequested
from tests.coordination.reference import CastVote, OneTest, Stage, Won
from tests.coordination.reference_ways import Next, Opened, Plan, Script, Ways
from tests.coordination.test_every_procedure import Play
from tests.coordination.test_reference import label_of

SHORT = 1_000

pytestmark = pytest.mark.uncounted


def plan_of(play: Play) -> Plan:
    rules, agents = play.rules, [*play.state.seats]
    places = {agent: place for place, agent in enumerate(agents)}
    return Plan(
        agents=len(agents),
        run_id=rules.seed,
        answers_each=rules.max_answers or 1,
        early=rules.early_decision,
        by_tests=rules.decide == "checks",
        checks=rules.checks is not None,
        required=rules.checks in ("required", "goal"),
        decide=rules.decide,
        effort=rules.effort,
        max_agents=rules.max_agents,
        listed=rules.order == "listed",
        writer=places.get(rules.writer or ""),
        judge=places.get(rules.judge or ""),
        write_check=rules.write_check,
        can_run=rules.can_run,
        vendors=tuple(rules.vendor(agent) for agent in agents),
        fallbacks=tuple(rules.fallback_vendors.get(agent, "") for agent in agents),
    )


class Listener:
    """Tells the second program what happened."""

    def __init__(self, play: Play) -> None:
        self.ways = Ways(plan_of(play))
        self.places = {agent: place for place, agent in enumerate(play.state.seats)}
        self.begun = False

    def hear(self, event: AnyEvent) -> None:  # noqa: C901 - one case per event, nothing else
        ways = self.ways
        match event:
            case BaseTaken():
                ways.base_files = event.tree or ""
            case FilesChecked():
                self._checked(event)
            case AttemptStarted():
                self.begun = True
            case AnswerSubmitted():
                self._answered(event)
            case VoteCast():
                self._voted(event)
            case WrittenTestsSubmitted():
                scripts = tuple(Script(one.script, one.expected) for one in event.tests)
                if ways.opened[-1].asked == "tests":
                    ways.written[self.places[event.agent]] = scripts
                else:
                    ways.said[len(ways.opened), self.places[event.agent]] = scripts
            case CheckFinished():
                outcome = event.outcome
                assert outcome.expected is not None
                run = (outcome.result, outcome.runs, outcome.flaky)
                ways.runs[event.tree, outcome.command, outcome.expected] = run
            case AgentDropped():
                ways.drop(self.places[event.agent])
            case FirstAnswersClosed():
                ways.first_answers_closed = True
            case FinishRequested():
                ways.finish = True
            case BudgetReached() | BudgetRaised():
                ways.budget_reached = isinstance(event, BudgetReached)
            case StageOpened():
                self._opened(event)
            case WinnerChosen():
                ways.won = self.step(event)  # type: ignore[assignment]
            case _:
                pass
        self._tests()

    def step(self, event: StageOpened | WinnerChosen) -> Won | Opened:
        if isinstance(event, WinnerChosen):
            return Won(label_of(event.label), event.outcome)
        named = {"test": "tests", "compare": "judge"}.get(event.kind, event.kind)
        asked = {"tied": "run-off", "still_tied": "tie", "compare": "compare"}.get(event.because, named)
        about = tuple(map(label_of, event.subjects))
        agents = tuple(self.places[agent] for agent in event.agents)
        return Opened(asked, about if asked in ("judge", "tie") else tuple(sorted(about)), agents)

    def _opened(self, event: StageOpened) -> None:
        stage = self.step(event)
        assert isinstance(stage, Opened)
        self.ways.opened.append(stage)
        if stage.asked in ("tests", "vote", "run-off", "tie"):
            self.ways.stages.append(Stage(stage.asked, stage.about, stage.agents))  # type: ignore[arg-type]
        if stage.asked == "answer":
            self.ways.first_answers_closed = False
            self.ways.replaced += len(stage.agents) if event.because == "dropped" else 0

    def _answered(self, event: AnswerSubmitted) -> None:
        ways, label = self.ways, label_of(event.label)
        ways.files[label] = ways.base_files if event.changes is None else event.changes.tree
        now = ways.opened[-1].asked if ways.opened else "answer"
        if now not in ("answer", "check", "confirm") and label[1] == 1:
            ways.reopen(label[0])
            now = "answer"
        ways.answers[label] = event.content
        if event.claims is not None:
            ways.text = label
            tests = (claim.test for claim in event.claims)
            ways.claims = tuple(Script(one.script, one.expected) for one in tests if one is not None)
        if now in ("answer", "check", "confirm"):
            ways.votes.clear()

    def _voted(self, event: VoteCast) -> None:
        ways, label = self.ways, label_of(event.label)
        if ways.opened and ways.opened[-1].asked in ("judge", "tie"):
            ways.verdicts[ways.opened[-1].about] = label
            return
        same = None if event.same_as is None else frozenset(map(label_of, event.same_as))
        votes = ways.run_off_votes if event.run_off else ways.votes
        votes.append(CastVote(self.places[event.agent], label, same))

    def _checked(self, event: FilesChecked) -> None:
        found = {one.command: "flaky" if one.flaky else one.result.replace("_", " ") for one in event.outcomes}
        if event.subject == "base":
            self.ways.base = found
        elif event.label is not None:
            label = label_of(event.label)
            self.ways.checked[label] = found
            self.ways.again[label] = {one.command for one in event.outcomes if one.runs > 1}

    def _tests(self) -> None:
        """What is known of the tests of a stage, in the words of the first part of the second program."""
        ways = self.ways
        stage = next((one for one in ways.opened if one.asked == "tests"), None)
        if stage is None:
            return
        about = {ways.files[label] for label in stage.about}
        ways.tests = {}
        for author, scripts in ways.written.items():
            ran = [one for one in scripts if all(ways.ran(tree, one) for tree in about)]
            ways.tests[author] = [
                OneTest(author, {tree: self._twice(tree, one) for tree in about}, one.script) for one in ran
            ]

    def _twice(self, tree: str, test: Script) -> tuple[bool, bool] | None:
        result, _, differs = self.ways.runs[tree, test.script, test.expected]
        return None if result == "not_run" else (result == "passed", (result == "passed") != differs)


def holds(step: Won | Opened | None, allowed: list[Next]) -> bool:
    if step is None or not allowed:
        return step is None and not allowed
    return any(
        one == step if isinstance(one, Won | Opened) else isinstance(step, Opened) and one.holds(step)
        for one in allowed
    )


def play(seeds: range) -> Counter[str]:
    """How many steps both took; else an AssertionError that tells the history."""
    found: Counter[str] = Counter()
    for seed in seeds:
        one = Play(seed).run()
        listener = Listener(one)
        for place, event in enumerate(one.events):
            listener.hear(event)
            following = one.events[place + 1] if place + 1 < len(one.events) else None
            step = listener.step(following) if isinstance(following, StageOpened | WinnerChosen) else None
            allowed = listener.ways.allowed() if listener.begun else []
            assert holds(step, allowed), "\n".join(
                map(str, (f"seed {seed}: {step} is recorded, allowed: {allowed}", one.rules, *one.events[: place + 1]))
            )
            if step is not None:
                found[step.outcome if isinstance(step, Won) else f"stage: {step.asked}"] += 1
    return found


def test_a_second_program_agrees_on_every_way_to_decide() -> None:
    found = play(range(SHORT))
    stages = (
        "answer",
        "tests",
        "vote",
        "run-off",
        "tie",
        "compare",
        "judge",
        "synthesise",
        "check",
    )
    assert {*found} >= {*(f"stage: {one}" for one in stages), "checked", "tested", "judged", "synthesised", "agreed"}


if __name__ == "__main__":
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for what, times in sorted(play(range(first, first + count)).items()):
        print(f"{times:>8,}  {what}")
    print(f"{count:>8,}  coordinations: agreed on in every step")
