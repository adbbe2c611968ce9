"""What each agent is doing at this moment and what it is just writing: for live displays, beside the snapshot."""

from dataclasses import dataclass, field, replace
from typing import Self, assert_never

from massgen_mcp.events.agent_work import (
    ModelCallAborted,
    ModelCallAdmitted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelCallWaiting,
    ModelReplied,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from massgen_mcp.events.record import LogRecord, outside_calls
from massgen_mcp.views.sentences import WORKFLOW_TOOLS, sentence_of

KEPT_CALLS = 20
KEPT_CHARACTERS = 8000
"""Of what an agent is writing; a display shows the end of it."""


@dataclass(frozen=True, slots=True)
class Activity:
    """`doing` is a few words, empty while nothing is known; `writing` is the reply as far as it has come."""

    doing: str = ""
    writing: str = ""
    tools: tuple[str, ...] = ()
    """Its last calls of tools, and which of them failed, a line each."""
    first_token_seconds: float | None = None
    """From the last call that was streamed to its first text."""
    sent_at: float | None = None
    """When the call was sent that no text has come of so far."""

    def after(self, record: LogRecord, doing: str) -> Self:
        """With what it is `doing` from this record on. What was being written is void with most events."""
        now, event = replace(self, doing=doing), record.event
        if outside_calls(event):
            return replace(now, writing="")
        match event:
            case TextDelta():
                now = replace(now, writing=(now.writing + event.text)[-KEPT_CHARACTERS:])
                if now.sent_at is None:
                    return now
                return replace(now, sent_at=None, first_token_seconds=max(0.0, record.time - now.sent_at))
            case ModelReplied():
                used = (call for call in event.tool_calls if call.name not in WORKFLOW_TOOLS)
                called = (f"$ {call.name} {call.arguments}" for call in used)
                return replace(now, writing=event.text[-KEPT_CHARACTERS:], tools=(*now.tools, *called)[-KEPT_CALLS:])
            case ToolFinished(is_error=True):
                return replace(now, tools=(*now.tools, f"✗ {event.name}: {event.result}")[-KEPT_CALLS:])
            case ToolStarted() | ToolFinished():
                return now
            case ModelCallStarted() | ModelCallAdmitted():
                return replace(now, writing="", sent_at=record.time)
            case ModelCallRetried():
                return replace(now, writing="", sent_at=record.time + event.wait_seconds)
            case ModelCallWaiting() | ModelCallFailed() | ModelCallAborted():
                return replace(now, writing="")
            case _:
                assert_never(event)


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
        if doing is not None and agent is not None:
            self.by_agent[agent] = self.of(agent).after(record, doing)
