"""Questions decided by the product's own pure rules: doubles play a coordination through its state machine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.deciding.doubles import Trial, Written
from massgen_mcp.coordination.agent_view import AgentView
from massgen_mcp.coordination.guidance import Violation, Work
from massgen_mcp.coordination.procedures import next_step
from massgen_mcp.coordination.state import Coordination, Effort, Rules
from massgen_mcp.coordination.testing import shares_of
from massgen_mcp.coordination.written_tests import DECIDING_RUNS
from massgen_mcp.events.agent_work import RoundStarted
from massgen_mcp.events.coordination import AnswerSubmitted, CheckFinished, StageOpened, WinnerChosen
from massgen_mcp.events.parts import Changes, CheckOutcome, Decide, WrittenTest
from massgen_mcp.events.record import AnyEvent
from massgen_mcp.events.run import AttemptStarted

Passes = Callable[[Written, int], bool]
"""Whether a test passes for an agent's answer."""


@dataclass(frozen=True, slots=True)
class Decided:
    """Who won and how, what it cost, and what the tests said."""

    winner: int
    outcome: str
    calls: int
    shares: Mapping[int, object]


@dataclass
class Play:
    """One coordination. `order`: agents in the order in which the config would list them."""

    trial: Trial
    decide: Decide
    order: tuple[int, ...]
    passes: Passes
    same_files: bool
    """Programs that are the same are the same files, too; else every answer has its own."""
    effort: Effort = "high"
    calls: int = 0

    def __post_init__(self) -> None:
        self.calls += self.decide == "vote"  # the final answer; with `checks` the answer stands as it was tested
        rules = Rules(1, "off", seed=self.trial.seed, decide=self.decide, effort=self.effort)
        self.names = {f"agent {agent}": agent for agent in self.order}
        self.state = Coordination.begin(tuple(self.names), rules).after(AttemptStarted(attempt=1))
        self.written: dict[str, list[Written]] = {}

    def run(self) -> Decided:
        while self.state.winner is None:
            due = next_step(self.state)
            if due is not None:
                self.happen(due)
                continue
            working = [name for name in self.names if isinstance(AgentView(self.state, name).get_duty(), Work)]
            assert working, "nobody is due, and nothing is decided"
            for name in working:
                self.calls += 1
                self._act(name)
        winner = self.state.winner
        shares = {self.names[self.state.author(label)]: share for label, share in shares_of(self.state).items()}
        return Decided(self.names[winner.agent], winner.outcome, self.calls, shares)

    def happen(self, event: AnyEvent | StageOpened | WinnerChosen) -> None:
        self.state = self.state.after(event)

    def _act(self, name: str) -> None:
        agent, stage = self.names[name], self.state.stage
        if not self.state.seats[name].answers:
            answer = AgentView(self.state, name).answer(f"answer of {name}")
            assert isinstance(answer, AnswerSubmitted)
            tree = self.trial.programs[agent].source if self.same_files else name
            self.happen(answer.model_copy(update={"changes": Changes(tree=tree)}))
        elif stage is not None and stage.kind == "test":
            self._write_tests(name)
        else:
            self._vote(name)

    def _write_tests(self, name: str) -> None:
        tests = self.trial.tests(self.names[name])
        written = [WrittenTest(title="t", script=f"{name} {n}", expected=one.expected) for n, one in enumerate(tests)]
        for test, one in zip(written, tests, strict=True):
            for other, agent in self.names.items():
                if not self.state.seats[other].answers:
                    continue
                changes = self.state.seats[other].answers[-1].changes
                assert changes is not None
                result = "passed" if self.passes(one, agent) else "failed"
                outcome = CheckOutcome(
                    command=test.script,
                    expected=test.expected,
                    result=result,
                    how="",
                    seconds=0,
                    runs=DECIDING_RUNS,
                )
                self.happen(CheckFinished(tree=changes.tree, outcome=outcome))
        submitted = AgentView(self.state, name).submit_tests(written)
        assert not isinstance(submitted, Violation)
        self.happen(submitted)

    def _vote(self, name: str) -> None:
        agent = self.names[name]
        ballot = self.state.ballot(name)
        self.happen(RoundStarted(agent=name, round=2, revision=ballot.revision, ballot=ballot.entries))
        by_agent = {self.names[self.state.author(entry.label)]: entry.name for entry in ballot.entries}
        of = "run-off" if self.state.run_off is not None else "vote"
        choice = self.trial.choice(agent, list(by_agent), of)
        programs = self.trial.programs
        same = [shown for other, shown in by_agent.items() if programs[other] is programs[choice] and other != choice]
        vote = AgentView(self.state, name).vote(by_agent[choice], "because", same)
        assert not isinstance(vote, Violation)
        self.happen(vote)


def as_run(trial: Trial) -> Passes:
    """What the programs returned."""
    return trial.passes


def swapped(trial: Trial) -> Passes:
    """A known-bad twin: what is told of the first two answers is told of the other one."""
    other = {0: 1, 1: 0}
    return lambda test, agent: as_run(trial)(test, other.get(agent, agent))


def decided(
    trial: Trial,
    decide: Decide,
    *,
    effort: Effort = "high",
    same_files: bool = True,
    backwards: bool = False,
    passes: Callable[[Trial], Passes] = as_run,
) -> Decided:
    """What the product's rules make of it."""
    order = tuple(range(len(trial.programs)))
    return Play(trial, decide, order[::-1] if backwards else order, passes(trial), same_files, effort).run()


def most_passed(trial: Trial) -> int:
    """A known-bad twin of the rule: all tests count, those of an answer's author, too; the first of the best wins."""
    tests = [test for agent in range(len(trial.programs)) for test in trial.tests(agent)]
    passes = as_run(trial)
    counts = [sum(passes(test, agent) for test in tests) for agent in range(len(trial.programs))]
    best = [agent for agent, count in enumerate(counts) if count == max(counts)]
    return trial.luck(0, "lot").choice(best)
