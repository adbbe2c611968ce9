"""What a run knows of one agent and of a vote beyond what the rules need of them."""

from dataclasses import dataclass

from massgen_mcp.coordination.state import Seat
from massgen_mcp.events import ActionForm, AgentDropped, AgentInfo, AnswerSubmitted
from massgen_mcp.run_state.status import AgentStatus


@dataclass(frozen=True, slots=True)
class Vote:
    voter: str
    label: str
    reason: str
    time: float


@dataclass
class AgentState:
    """Mutable while being folded; treat it as read-only."""

    info: AgentInfo
    seat: Seat
    """How it stands by the rules, as the coordination has it now."""
    status: AgentStatus = "waiting"
    rounds: int = 0
    """How many it has begun in the whole run."""
    round: int = 0
    """Number of the one that it began last in this attempt."""
    opening: str = ""
    """The nonce of the markers around the question, as the agent was shown it last."""
    acted_in: ActionForm | None = None
    """How it wrote its last answer or vote."""
    last_activity: float | None = None
    dropped_at: float | None = None

    @property
    def answers(self) -> tuple[AnswerSubmitted, ...]:
        """Of this attempt, oldest first."""
        return self.seat.answers

    @property
    def dropped(self) -> AgentDropped | None:
        """Why it takes part no more."""
        return self.seat.dropped

    @property
    def restarts(self) -> int:
        """Rounds that began because answers had changed."""
        return max(0, self.rounds - 1)

    @property
    def latest_label(self) -> str | None:
        return self.answers[-1].label if self.answers else None
