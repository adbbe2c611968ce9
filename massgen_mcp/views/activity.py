"""What each agent is doing at this moment and what it is just writing: for live displays, beside the snapshot."""

from dataclasses import dataclass, field, replace

from massgen_mcp.events.agent_work import (
    ModelCallAdmitted,
    ModelCallRetried,
    ModelCallStarted,
    ModelReplied,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from massgen_mcp.events.record import LogRecord
from massgen_mcp.views.sentences import sentence_of

KEPT_CHARACTERS = 8000
"""Of what an agent is writing; a display shows the end of it."""


@dataclass(frozen=True, slots=True)
class Activity:
    """`doing` is a few words, empty while nothing is known; `writing` is the reply as far as it has come."""

    doing: str = ""
    writing: str = ""
    first_token_seconds: float | None = None
    """From the last call that was streamed to its first text."""
    sent_at: float | None = None
    """When the call was sent that no text has come of so far."""


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
        now = replace(_timed(self.of(agent), record), doing=doing)
        match record.event:
            case TextDelta() as event:
                self.by_agent[agent] = replace(now, writing=(now.writing + event.text)[-KEPT_CHARACTERS:])
            case ModelReplied() as event:
                self.by_agent[agent] = replace(now, writing=event.text[-KEPT_CHARACTERS:])
            case ToolStarted() | ToolFinished():
                self.by_agent[agent] = now
            case _:  # what was being written is void, or nothing is being written
                self.by_agent[agent] = replace(now, writing="")


def _timed(now: Activity, record: LogRecord) -> Activity:
    match record.event:
        case ModelCallStarted() | ModelCallAdmitted():
            return replace(now, sent_at=record.time)
        case TextDelta() if now.sent_at is not None:
            return replace(now, sent_at=None, first_token_seconds=max(0.0, record.time - now.sent_at))
        case ModelCallRetried() as event:
            return replace(now, sent_at=record.time + event.wait_seconds)
        case _:
            return now
