"""Trials: whole runs of the real orchestrator in memory, and what came of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from random import Random

from examples.simulation.agents import Poll, SimulatedAgent, Voting
from examples.simulation.world import Question, World, draw
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.agent_work import ModelCallStarted, ModelReplied
from massgen_mcp.events.coordination import StageOpened, VoteCast, WinnerChosen
from massgen_mcp.events.parts import Event, public_agent_name
from massgen_mcp.events.run import RunCompleted
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from tests.in_memory import EventList, NullAnswerStore


@dataclass(frozen=True, slots=True)
class Cell:
    """One row's setting."""

    world: World
    agents: int
    voting: Voting


@dataclass(frozen=True, slots=True)
class Trial:
    """How one run ended. `voters` are the seats (from 0) in the order of their votes; those of a run-off, and verdicts
    after it, are not in these figures.
    """

    right: bool
    right_by_wording: float
    """The chance that the most voted answer is right, if answers that are tied were drawn from."""
    winner: WinnerChosen
    voters: tuple[int, ...]
    self_votes: int
    model_calls: int
    replies: int
    """Model calls that were not cut off."""

    @property
    def self_share(self) -> float:
        """The share of votes for the voter's own answer."""
        return self.self_votes / max(1, len(self.voters))

    @property
    def tied(self) -> bool:
        """The votes were, before any run-off."""
        return self.winner.run_off is not None

    @property
    def by_lot(self) -> bool:
        return self.winner.outcome == "tie_broken"

    @property
    def unanimous(self) -> bool:
        return self.winner.outcome == "consensus"


ONCE = Rules(max_answers=1, early_decision="off")
"""Nobody answers twice and nothing is decided early, so every agent votes once, and once more in a run-off."""


async def run_cell(
    cell: Cell, trials: int, seed: str, *, rules: Rules = ONCE, questions: str | None = None
) -> Sequence[Trial]:
    """`trials` runs one after the other; the same seed gives the same trials. Cells that share the text `questions` get
    the same questions, answers and luck.
    """
    shared = str(cell) if questions is None else questions
    return [await run_trial(cell, f"{seed}/{shared}/{number}", rules) for number in range(trials)]


async def run_trial(cell: Cell, seed: str, rules: Rules = ONCE) -> Trial:
    """One run; `seed` decides everything in it."""
    question = draw(cell.world, cell.agents, Random(seed))
    poll = Poll()
    agents = [
        SimulatedAgent(option, question.right, cell.voting, poll, Random(f"{seed}/{seat}"))
        for seat, option in enumerate(question.answers)
    ]
    team = tuple(Member(public_agent_name(seat), agent) for seat, agent in enumerate(agents))
    rules = replace(rules, seed=seed)
    journal = EventList()
    await Conductor(RunSpec("Which option is right?", team, rules, TeamLimits(), NullAnswerStore()), journal).conduct()
    return _trial(journal.events, question)


def _trial(events: list[Event], question: Question) -> Trial:
    end = events[-1]
    if not isinstance(end, RunCompleted):
        raise TypeError(f"a simulated run must complete, but it ended with {end!r}")
    before = takewhile(lambda event: not isinstance(event, StageOpened), events)
    votes = [event for event in before if isinstance(event, VoteCast)]
    (winner,) = (event for event in events if isinstance(event, WinnerChosen))
    top = [label for label, count in winner.votes.items() if count == max(winner.votes.values())]
    rights = [question.answers[int(label.removeprefix("agent").split(".")[0]) - 1] == question.right for label in top]
    seats = {public_agent_name(seat): seat for seat in range(len(question.answers))}
    return Trial(
        right=end.answer[0] == question.right,
        right_by_wording=sum(rights) / len(rights),
        winner=winner,
        voters=tuple(seats[vote.agent] for vote in votes),
        self_votes=sum(vote.label == f"agent{seats[vote.agent] + 1}.1" for vote in votes),
        model_calls=sum(isinstance(event, ModelCallStarted) for event in events),
        replies=sum(isinstance(event, ModelReplied) for event in events),
    )
