"""Beside the live view's frame: one line for each event that a person who follows a run wants to keep.

Must not know terminals.
"""

from massgen_mcp.events import (
    AgentDropped,
    AnswerEvaluated,
    AnswerSubmitted,
    AskerSaid,
    AttemptStarted,
    BudgetMark,
    BudgetRaised,
    BudgetReached,
    FirstAnswersClosed,
    InputGiven,
    InputRequired,
    LogRecord,
    ModelCallRetried,
    PresentationFailed,
    PresentationStarted,
    RuleViolated,
    VoteCast,
    WinnerChosen,
)
from massgen_mcp.views.figures import clock
from massgen_mcp.views.log_text import preview
from massgen_mcp.views.snapshot import RunSnapshot
from massgen_mcp.views.spent import dollars
from massgen_mcp.views.styled import Line, Span, Style, columns, line, width_of

_MAX_NAME = 20
_MAX_TEXT = 4000
"""Characters of a line; a question to the person is that long at most."""


def event_line(record: LogRecord, run: RunSnapshot) -> Line | None:
    """What a person who follows the run wants to keep; `run` is the snapshot with `record` folded in. None: nothing."""
    told = _told(record)
    if told is None:
        return None
    label, style, text = told
    name = getattr(record.event, "agent", None)
    who = run.agents[name].info.id if name in run.agents else ""
    width = min(_MAX_NAME, max((width_of(view.info.id) for view in run.agents.values()), default=0))
    moment = clock(max(0.0, record.time - (run.started_at or record.time)))
    row = columns([(Span(moment, "dim"), 5), (Span(who, "strong"), width)]) if width else (Span(moment, "dim"),)
    colon = ": " if text else ""
    return line(*row, Span(" "), Span(label, style), Span(f"{colon}{preview(text, _MAX_TEXT)}"))


def _told(record: LogRecord) -> tuple[str, Style, str] | None:  # noqa: C901 - one line per event
    """What happened, how that looks, and the words that belong to it."""
    match record.event:
        case AttemptStarted() as event if event.attempt > 1:
            return f"attempt {event.attempt} begins", "busy", event.reason
        case AnswerSubmitted() as event:
            return f"◆ answer {event.label}", "accent", event.content
        case VoteCast() as event:
            return f"✓ votes for {event.label}", "good", event.reason
        case RuleViolated() as event if event.counts:
            return f"! {event.code}", "dim", event.message
        case ModelCallRetried() as event:
            return f"! {event.reason}, tried again in {event.wait_seconds:.0f} s", "busy", event.message
        case FirstAnswersClosed() as event:
            return "no longer waiting for the first answers", "busy", ", ".join(event.awaited)
        case AgentDropped() as event:
            return f"✗ falls out ({event.reason})", "bad", event.message
        case WinnerChosen() as event:
            return f"★ wins with {event.label} ({event.outcome}), {event.votes.get(event.label, 0)} votes", "title", ""
        case PresentationStarted():
            return "writes the final answer", "", ""
        case PresentationFailed() as event:
            return f"✗ could not write the final answer ({event.reason})", "bad", event.message
        case AnswerEvaluated() as event if not event.sufficient:
            return "judges it insufficient", "busy", event.reason
        case BudgetMark() as event:
            return f"{event.percent} % of the budget is spent", "busy", ""
        case BudgetReached() as event:
            return "! the budget is reached", "bad", event.message
        case BudgetRaised() as event:
            return f"the budget is raised to {dollars(event.max_usd)}", "accent", ""
        case InputRequired() as event:
            return "? asks you", "accent", event.text
        case InputGiven() as event:
            return f"you decided ({event.kind})", "accent", event.text
        case AskerSaid() as event:
            return "you said", "accent", event.message
        case _:
            return None
