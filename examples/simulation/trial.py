"""Trials: whole runs of the real orchestrator in memory, and what came of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from examples.simulation.agents import Poll, SimulatedAgent, Voting
from examples.simulation.world import Question, World, draw
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events import Event, ModelCallStarted, Outcome, RunCompleted, VoteCast, public_agent_name
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.in_memory import EventList, NullAnswerStore
from massgen_mcp.orchestration.team import Limits, Member, RunSpec


@dataclass(frozen=True, slots=True)
class Cell:
    """One row's setting."""

    world: World
    agents: int
    voting: Voting


@dataclass(frozen=True, slots=True)
class Trial:
    """How one run ended. `voters` are the seats (from 0) in the order of their votes."""

    right: bool
    outcome: Outcome
    voters: tuple[int, ...]
    self_votes: int
    model_calls: int

    @property
    def self_share(self) -> float:
        """The share of votes for the voter's own answer."""
        return self.self_votes / max(1, len(self.voters))

    @property
    def tied(self) -> bool:
        return self.outcome == "tie_broken"

    @property
    def unanimous(self) -> bool:
        return self.outcome == "consensus"


async def run_cell(cell: Cell, trials: int, seed: str) -> Sequence[Trial]:
    """`trials` runs one after the other; the same seed gives the same trials."""
    return [await run_trial(cell, f"{seed}/{cell}/{number}") for number in range(trials)]


async def run_trial(cell: Cell, seed: str) -> Trial:
    """One run. Nobody answers twice and nothing is decided early, so every agent votes once."""
    question = draw(cell.world, cell.agents, Random(seed))
    poll = Poll()
    agents = [
        SimulatedAgent(option, question.right, cell.voting, poll, Random(f"{seed}/{seat}"))
        for seat, option in enumerate(question.answers)
    ]
    team = tuple(Member(public_agent_name(seat), agent) for seat, agent in enumerate(agents))
    rules = Rules(max_answers=1, early_decision="off", seed=seed)
    journal = EventList()
    await Conductor(RunSpec("Which option is right?", team, rules, Limits(), NullAnswerStore()), journal).conduct()
    return _trial(journal.events, question)


def _trial(events: list[Event], question: Question) -> Trial:
    end = events[-1]
    if not isinstance(end, RunCompleted):
        raise TypeError(f"a simulated run must complete, but it ended with {end!r}")
    votes = [event for event in events if isinstance(event, VoteCast)]
    seats = {public_agent_name(seat): seat for seat in range(len(question.answers))}
    return Trial(
        right=end.answer[0] == question.right,
        outcome=end.outcome,
        voters=tuple(seats[vote.agent] for vote in votes),
        self_votes=sum(vote.label == f"agent{seats[vote.agent] + 1}.1" for vote in votes),
        model_calls=sum(isinstance(event, ModelCallStarted) for event in events),
    )
