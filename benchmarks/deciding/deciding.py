"""Questions decided by the product's own pure rules: doubles play a coordination through its state machine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from benchmarks.deciding.doubles import Trial, Written
from massgen_mcp.coordination.agent_view import AgentView
from massgen_mcp.coordination.guidance import Violation, Work
from massgen_mcp.coordination.procedures import next_step
from massgen_mcp.coordination.state import Coordination, Effort, Rules
from massgen_mcp.coordination.testing import shares_of
from massgen_mcp.coordination.written_tests import DECIDING_RUNS
from massgen_mcp.events.agent_work import RoundStarted
from massgen_mcp.events.coordination import (
    AnswerSubmitted,
    CheckFinished,
    FirstAnswersClosed,
    StageOpened,
    WinnerChosen,
)
from massgen_mcp.events.parts import AgentInfo, Changes, CheckOutcome, Decide, WrittenTest
from massgen_mcp.events.record import AnyEvent, LogRecord
from massgen_mcp.events.run import AttemptStarted, RunCompleted
from massgen_mcp.money.budget import Budget
from massgen_mcp.run_state.state import RunState

Passes = Callable[[Written, int], bool]
"""Whether a test passes for an agent's answer."""

Late = Literal["included", "left out"]
"""What becomes of the last agent's first answer, which comes when another agent has voted, or never."""

INPUT_PRICE, OUTPUT_PRICE = 3e-6, 15e-6
"""Dollars for a token, as of a usual model."""
QUESTION, PROGRAM, TESTS, VOTE = 600, 400, 250, 120
"""Tokens of the question with the instructions, of a program, of an agent's tests, and of a vote with its reason. They
are assumed, like the probabilities.
"""


@dataclass(frozen=True, slots=True)
class Decided:
    """The winner and the way it was found, the costs, the shares of tests, and why the decision is weak."""

    winner: int
    outcome: str
    calls: int
    dollars: float
    shares: Mapping[int, object]
    weak: tuple[str, ...]


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
    late: Late | None = None
    vendors: tuple[str, ...] = ()
    """The vendor of each agent's model; empty: none is known."""
    fallbacks: tuple[str, ...] = ()
    """The vendor of each agent's fallback."""
    calls: int = 0
    dollars: float = 0.0

    def __post_init__(self) -> None:
        self.names = {f"agent {agent}": agent for agent in self.order}
        rules = Rules(
            1,
            "off",
            seed=self.trial.seed,
            decide=self.decide,
            effort=self.effort,
            vendors=dict(zip(self.names, self.vendors, strict=False)),
            fallback_vendors=dict(zip(self.names, self.fallbacks, strict=False)),
        )
        agents = [AgentInfo(name=name, id=name, backend="double", model="double") for name in self.names]
        self.run_state = RunState.begin(agents, rules, Budget())
        self.happen(AttemptStarted(attempt=1))
        self.written: dict[str, list[Written]] = {}

    @property
    def state(self) -> Coordination:
        return self.run_state.coordination

    def run(self) -> Decided:
        while self.state.winner is None:
            due = next_step(self.state)
            if due is not None:
                self.happen(due)
                continue
            working = [name for name in self.names if isinstance(AgentView(self.state, name).get_duty(), Work)]
            able = [name for name in working if not self._is_missing(name)]
            if not able and not self.state.stragglers_given_up:
                self.happen(FirstAnswersClosed(awaited=self.state.unanswered))
                continue
            assert able, "nobody is due, and nothing is decided"
            for name in able:
                if self.late == "included" and self._is_missing(self.last) and self.state.choices:
                    self._act(self.last)  # while others vote, so that their votes are void
                    break
                self._act(name)
        winner = self.state.winner
        if self.decide == "vote":
            self._pay(
                shown=len(self.state.answered), written=PROGRAM
            )  # with `checks` an answer stands as it was tested
        shares = {self.names[self.state.author(label)]: share for label, share in shares_of(self.state).items()}
        ended = RunCompleted(winner=winner.agent, outcome=winner.outcome, answer="a program")
        self.run_state.end_with(ended)
        weak = self.run_state.work_done.weak
        return Decided(self.names[winner.agent], winner.outcome, self.calls, self.dollars, shares, weak)

    @property
    def last(self) -> str:
        """The agent that is listed last."""
        return [*self.names][-1]

    def happen(self, event: AnyEvent | StageOpened | WinnerChosen) -> None:
        self.run_state.apply(LogRecord.model_construct(seq=self.run_state.seq + 1, time=0.0, clock=0.0, event=event))

    def _is_missing(self, name: str) -> bool:
        """Return whether this agent's first answer is late and has not come."""
        return self.late is not None and name == self.last and not self.state.seats[name].answers

    def _pay(self, *, shown: int, written: int) -> None:
        """Charge for one call that is shown so many programs."""
        self.calls += 1
        self.dollars += INPUT_PRICE * (QUESTION + shown * PROGRAM) + OUTPUT_PRICE * written

    def _act(self, name: str) -> None:
        agent, stage = self.names[name], self.state.stage
        if not self.state.seats[name].answers:
            self._pay(shown=0, written=PROGRAM)
            answer = AgentView(self.state, name).answer(f"answer of {name}")
            assert isinstance(answer, AnswerSubmitted)
            tree = self.trial.programs[agent].source if self.same_files else name
            self.happen(answer.model_copy(update={"changes": Changes(tree=tree)}))
        elif stage is not None and stage.kind == "test":
            self._pay(shown=len(stage.subjects), written=TESTS)
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
        self._pay(shown=len(by_agent), written=VOTE)
        choice = self._choose(agent, list(by_agent))
        programs = self.trial.programs
        same = [shown for other, shown in by_agent.items() if programs[other] is programs[choice] and other != choice]
        vote = AgentView(self.state, name).vote(by_agent[choice], "because", same)
        assert not isinstance(vote, Violation)
        self.happen(vote)

    def _choose(self, agent: int, shown: list[int]) -> int:
        """Choose as an agent does; a judge of a tie has other luck for each order, and a fallback has no own answer."""
        stage = self.state.stage
        if stage is None or stage.because != "still_tied":
            return self.trial.choice(agent, shown, "vote" if self.state.run_off is None else "run-off")
        judge = len(self.names) + agent if stage.by_fallback else agent
        return self.trial.choice(judge, shown, f"tie {' '.join(stage.subjects)}")


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
    late: Late | None = None,
    vendors: tuple[str, ...] = (),
    fallbacks: tuple[str, ...] = (),
) -> Decided:
    """What the product's rules make of it."""
    order = tuple(range(len(trial.programs)))
    order = order[::-1] if backwards else order
    return Play(trial, decide, order, passes(trial), same_files, effort, late, vendors, fallbacks).run()


def most_passed(trial: Trial) -> int:
    """A known-bad twin of the rule: all tests count, those of an answer's author, too; the first of the best wins."""
    tests = [test for agent in range(len(trial.programs)) for test in trial.tests(agent)]
    passes = as_run(trial)
    counts = [sum(passes(test, agent) for test in tests) for agent in range(len(trial.programs))]
    best = [agent for agent, count in enumerate(counts) if count == max(counts)]
    return trial.luck(0, "lot").choice(best)
