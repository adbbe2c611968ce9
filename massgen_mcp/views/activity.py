"""What each agent is doing at this moment and what it is just writing: for live displays, beside the snapshot."""

from dataclasses import dataclass, field

from massgen_mcp.events import LogRecord, ModelReplied, TextDelta, ToolFinished, ToolStarted
from massgen_mcp.views.sentences import sentence_of

KEPT_CHARACTERS = 8000
"""Of what an agent is writing; a display shows the end of it."""


@dataclass
class Activity:
    """`doing` is a few words, empty while nothing is known; `writing` is the reply as far as it has come."""

    doing: str = ""
    writing: str = ""


@dataclass
class Activities:
    """A fold over a run's events. Mutable while being folded; treat it as read-only."""

    by_agent: dict[str, Activity] = field(default_factory=dict[str, Activity])

    def of(self, agent: str) -> Activity:
        return self.by_agent.get(agent, Activity())

    def apply(self, record: LogRecord) -> None:
        """Fold one more record in."""
        doing = sentence_of(record.event).doing
        agent = getattr(record.event, "agent", None)
        if doing is None or agent is None:
            return
        writing = ""
        match record.event:
            case TextDelta() as event:
                writing = self.of(agent).writing + event.text
            case ModelReplied() as event:
                writing = event.text
            case ToolStarted() | ToolFinished():
                writing = self.of(agent).writing
            case _:
                pass  # what was being written is void, or nothing is being written
        self.by_agent[agent] = Activity(doing, writing[-KEPT_CHARACTERS:])
