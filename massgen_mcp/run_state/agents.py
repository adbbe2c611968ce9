"""What a run knows of one agent, and of its answers and votes beyond what the rules need of them."""

from dataclasses import dataclass, field

from massgen_mcp.events import ActionForm, AgentDropped, AgentInfo
from massgen_mcp.run_state.status import AgentStatus


@dataclass(frozen=True, slots=True)
class Answer:
    """`path` is the answer's directory, relative to the run directory; None where it has none."""

    agent: str
    label: str
    content: str
    path: str | None
    attempt: int


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
    status: AgentStatus = "waiting"
    answers: list[Answer] = field(default_factory=list[Answer])
    """Of this attempt, oldest first."""
    rounds: int = 0
    """How many it has begun in the whole run."""
    round: int = 0
    """Number of the one that it began last in this attempt."""
    opening: str = ""
    """The nonce of the markers around the question, as the agent was shown it last."""
    acted_in: ActionForm | None = None
    """How it wrote its last answer or vote."""
    last_activity: float | None = None
    dropped: AgentDropped | None = None
    """Why it takes part no more."""
    dropped_at: float | None = None

    @property
    def restarts(self) -> int:
        """Rounds that began because answers had changed."""
        return max(0, self.rounds - 1)

    @property
    def latest_label(self) -> str | None:
        return self.answers[-1].label if self.answers else None
