"""Votes find the winner: see `deciding`. Pure."""

from collections.abc import Iterable
from typing import Protocol

from massgen_mcp.coordination.deciding import decision
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.coordination.testing import files_of
from massgen_mcp.events.coordination import StageOpened, WinnerChosen
from massgen_mcp.events.parts import StageReason

NextStep = StageOpened | WinnerChosen | None


class Procedure(Protocol):
    def next(self, state: Coordination) -> NextStep:
        """What is due in this state, in which some answer stands and no winner is chosen."""
        ...


class DecideByVotes:
    def next(self, state: Coordination) -> NextStep:
        if state.stage is not None and state.stage.kind == "test" and not state.finish_requested:
            return vote_on(state, files_of(state), "no_sandbox")  # the process before this one had a sandbox
        return decision(state)


def vote_on(state: Coordination, subjects: Iterable[str], because: StageReason) -> StageOpened:
    """A vote on these answers, by label, after which no answer is accepted any more."""
    agents = tuple(agent for agent in state.live if agent in state.answered)
    return StageOpened(kind="vote", subjects=tuple(subjects), agents=agents, because=because)
