"""What a run knows of one agent, and of its answers and votes beyond what the rules need of them."""

from dataclasses import dataclass, field

from massgen_mcp.events import ActionForm, AgentDropped, AgentInfo, AnswerSubmitted, ModelReplied
from massgen_mcp.run_state.status import AgentStatus

WORKING_NOTES = 1_500
"""Characters of an agent's working notes that it is shown again."""
_KEPT_NOTES = 20_000
"""Until the answer is known, which may be a part of them."""


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
    working_notes: str = ""
    """The end of what it wrote on the way to its first answer of this attempt, besides that answer."""
    acted_in: ActionForm | None = None
    """How it wrote its last answer or vote."""
    last_activity: float | None = None
    dropped: AgentDropped | None = None
    """Why it takes part no more."""
    dropped_at: float | None = None

    def note(self, event: ModelReplied) -> None:
        """Keep what the agent writes before its first answer: its text, or else what it tells of its thoughts."""
        written = event.text.strip() or event.reasoning.strip()
        if not self.answers and event.purpose == "coordinate" and written:
            self.working_notes = f"{self.working_notes}\n\n{written}".strip()[-_KEPT_NOTES:]

    def answered(self, event: AnswerSubmitted, attempt: int) -> None:
        """Keep an answer; where it was written as the last paragraphs of plain text, too, those are no note."""
        if not self.answers:
            notes, content = self.working_notes, event.content.strip()[-_KEPT_NOTES:]
            if f"\n\n{notes}".endswith(f"\n\n{content}"):
                notes = notes.removesuffix(content).strip()
            self.working_notes = notes[-WORKING_NOTES:]
        self.answers.append(Answer(event.agent, event.label, event.content, event.path, attempt))

    @property
    def restarts(self) -> int:
        """Rounds that began because answers had changed."""
        return max(0, self.rounds - 1)

    @property
    def latest_label(self) -> str | None:
        return self.answers[-1].label if self.answers else None
