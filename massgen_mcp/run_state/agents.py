"""What a run knows of one agent and of a vote beyond what the rules need of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from massgen_mcp.coordination.state import Seat
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.agent_work import ModelReplied
from massgen_mcp.events.coordination import ActionForm, AgentDropped, AnswerSubmitted, ModelReplaced
from massgen_mcp.events.parts import AgentInfo, Changes, ShortenedText
from massgen_mcp.run_state.status import AgentStatus

WORKING_NOTES = 1_500
"""Characters of an agent's working notes that it is shown again."""
_KEPT_NOTES = 20_000
"""Until the answer is known, which may be a part of them."""


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
    working_notes: str = ""
    """The end of what it wrote on the way to its first answer of this attempt, besides that answer."""
    acted_in: ActionForm | None = None
    """How it wrote its last answer or vote."""
    opened_with: tuple[ShortenedText, ...] = ()
    """The texts of which its present work was shown a part."""
    acted_on: tuple[ShortenedText, ...] = ()
    """The texts of which it had been shown a part when it answered, voted or wrote tests; of each the least share."""
    voted_on: tuple[ShortenedText, ...] = ()
    """The same for its last vote."""
    began_at: float | None = None
    """When it began to work on its first answer, in seconds of work on the run."""
    first_answer_seconds: float | None = None
    """How long it worked on its first answer."""
    last_activity: float | None = None
    dropped_at: float | None = None
    budget_wait: str = ""
    """Why its next call waits for room in the budget; empty while none does."""
    replaced: ModelReplaced | None = None
    """Why its fallback has taken the place of its own model."""
    own_model: str = ""
    """What it asked before its fallback, as PROVIDER/MODEL."""

    def replace_model(self, event: ModelReplaced) -> None:
        """Let its fallback be its model from now on."""
        self.replaced = event
        self.own_model = f"{self.info.backend}/{self.info.model}"
        self.info = self.info.model_copy(update={"backend": event.backend, "model": event.model})

    def note(self, event: ModelReplied) -> None:
        """Keep what the agent writes before its first answer: its text, or else what it tells of its thoughts; and the
        nonce of its question, where that is a new one.
        """
        self.opening = event.opening or self.opening
        written = event.text.strip() or event.reasoning.strip()
        if not self.answers and event.purpose == "coordinate" and written:
            self.working_notes = f"{self.working_notes}\n\n{written}".strip()[-_KEPT_NOTES:]

    def note_beginning(self, elapsed: float) -> None:
        """Keep when it began its first round. `elapsed`: seconds of work on the run."""
        if self.began_at is None:
            self.began_at = elapsed

    def note_first_answer(self, elapsed: float) -> None:
        """Keep how long its first answer took. `elapsed`: seconds of work on the run."""
        if self.first_answer_seconds is None and self.began_at is not None:
            self.first_answer_seconds = elapsed - self.began_at

    def answered(self, event: AnswerSubmitted) -> None:
        """What of a first answer was written as the last paragraphs of plain text, too, is no note."""
        if len(self.answers) == 1:
            notes, content = self.working_notes, event.content.strip()[-_KEPT_NOTES:]
            if f"\n\n{notes}".endswith(f"\n\n{content}"):
                notes = notes.removesuffix(content).strip()
            self.working_notes = notes[-WORKING_NOTES:]

    def read_opening(self, shortened: Iterable[ShortenedText]) -> None:
        """Note how much of its texts a piece of work begins with."""
        self.opened_with = tuple(shortened)

    def read_ballot(self, shortened: Iterable[ShortenedText]) -> None:
        """Note how much of a newer ballot it was shown; the question stays as it was."""
        kept = (one for one in self.opened_with if one.text in ("question", "history"))
        self.opened_with = (*kept, *shortened)

    def act(self) -> None:
        """Note that it acts on what it was shown."""
        least: dict[str, ShortenedText] = {}
        for one in (*self.acted_on, *self.opened_with):
            known = least.get(one.text)
            if known is None or one.shown * known.of < known.shown * one.of:
                least[one.text] = one
        self.acted_on = tuple(least.values())

    @property
    def answers(self) -> tuple[AnswerSubmitted, ...]:
        """Of this attempt, oldest first."""
        return self.seat.answers

    @property
    def latest_changes(self) -> Changes | None:
        """What it made of the caller's files last: unfinished, where it was dropped after its last answer."""
        if self.dropped is not None and self.dropped.changes is not None:
            return self.dropped.changes
        return self.answers[-1].changes if self.answers else None

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
        if not self.answers:
            return None
        return self.answers[-1].label


def find_agent(agents: Mapping[str, AgentState], asked: str | None) -> str:
    """The record's name of the agent that the caller means: an id, else one of the record's names.

    Raises `MassgenError` invalid_arguments with the ids.
    """
    by_id = {agent.info.id: name for name, agent in agents.items()}
    if asked in by_id:
        return by_id[asked]
    if asked is not None and asked in agents:
        return asked
    raise MassgenError("invalid_arguments", f"`agent` must be one of: {', '.join(by_id) or 'none yet'}")
