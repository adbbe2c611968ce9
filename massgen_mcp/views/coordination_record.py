"""The record of who did what: `coordination_events.json` for programs, `coordination_table.txt` for people.

Only what belongs to the coordination: no streamed text, no model calls, no tools. Event names are those of MassGen
where it has one for the same thing. Must not know files.
"""

import textwrap
from collections.abc import Iterable
from typing import Any

from massgen_mcp.events import (
    AgentDropped,
    AgentInfo,
    AnswerEvaluated,
    AnswerPresented,
    AnswerSubmitted,
    AskerSaid,
    AttemptStarted,
    BallotChanged,
    BudgetRaised,
    BudgetReached,
    Event,
    FinishRequested,
    FirstAnswersClosed,
    InputGiven,
    InputRequired,
    LogRecord,
    PresentationFailed,
    PresentationStarted,
    RoundStarted,
    RuleViolated,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
    RunTimedOut,
    VoteCast,
    WinnerChosen,
)
from massgen_mcp.views.log_text import plain, preview
from massgen_mcp.views.snapshot import RunSnapshot
from massgen_mcp.views.spent import spent_json, spent_text
from massgen_mcp.views.vote_results import agent_mapping, answers, vote_results

WIDTH = 100
MIN_WIDTH = 40
_TIME, _AGENT = 9, 9


def coordination_events(run: RunSnapshot, records: Iterable[LogRecord]) -> dict[str, Any]:
    """`{session_metadata, vote_results, answers, events}`; an event has timestamp, event_type, agent_id (or null),
    details (one sentence) and context (the facts). Paths are relative to the run directory.
    """
    return {
        "session_metadata": {
            "run_id": run.run_id,
            "user_prompt": run.question,
            "agent_mapping": agent_mapping(run),
            "start_time": run.started_at,
            "end_time": run.ended_at,
            "state": run.state,
            "outcome": run.outcome,
            "final_winner": run.winner.agent if run.winner else None,
            "attempts": run.attempt,
            "spent": spent_json(run.spent),
        },
        "vote_results": vote_results(run),
        "answers": answers(run),
        "events": [
            {
                "timestamp": record.time,
                "event_type": told[0],
                "agent_id": getattr(record.event, "agent", None),
                "details": told[1],
                "context": record.event.model_dump(mode="json", exclude={"type", "agent"}),
            }
            for record in records
            if (told := _told(record.event))
        ],
    }


def coordination_table(run: RunSnapshot, records: Iterable[LogRecord], *, width: int = WIDTH) -> str:
    """The run as a table of at most `width` columns (between 40 and 100): seconds since its start, who, and what."""
    width = max(MIN_WIDTH, min(WIDTH, width))
    lines = [f"Question: {preview(run.question, width - 10)}"]
    lines += [_member(view.info, width) for view in run.agents.values()]
    lines += ["", f"{'seconds':>{_TIME}}  {'agent':<{_AGENT}}  what happened", "-" * width]
    for record in records:
        if told := _told(record.event):
            seconds = record.time - (run.started_at or record.time)
            lines += _row(f"{seconds:.2f}", getattr(record.event, "agent", None) or "", told[1], width)
    lines.append("-" * width)
    if run.winner:
        votes = ", ".join(f"{label}: {count}" for label, count in run.winner.votes.items())
        lines += textwrap.wrap(f"Votes: {votes}", width)
    lines.append(f"Spent: {spent_text(run.spent)}")
    lines.append(f"End: {run.state}" + (f" ({run.outcome})" if run.outcome else ""))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _member(info: AgentInfo, width: int) -> str:
    return preview(f"{info.name} = {info.id} ({info.backend}/{info.model})", width)


def _row(seconds: str, agent: str, text: str, width: int) -> list[str]:
    first, *rest = textwrap.wrap(plain(text), width - _TIME - _AGENT - 4) or [""]
    head = f"{seconds:>{_TIME}}  {agent[:_AGENT]:<{_AGENT}}  {first}"
    return [head, *(f"{'':<{_TIME + _AGENT + 4}}{line}" for line in rest)]


def _told(event: Event) -> tuple[str, str] | None:  # noqa: C901 - one line per event
    """The event's name and what it says in a sentence; None for what is not coordination."""
    match event:
        case RunStarted():
            return "session_start", f"the run starts with {len(event.agents)} agents"
        case AttemptStarted():
            why = f": {preview(event.reason)}" if event.reason else ""
            return ("restart" if event.attempt > 1 else "attempt_start"), f"attempt {event.attempt} begins{why}"
        case RoundStarted():
            shown = ", ".join(f"{entry.name} = {entry.label}" for entry in event.ballot) or "no answers"
            return "context_received", f"round {event.round} begins, seeing {shown}"
        case BallotChanged():
            shown = ", ".join(f"{entry.name} = {entry.label}" for entry in event.ballot)
            return "update_injected", f"is shown the new answers: {shown}"
        case AnswerSubmitted():
            voided = f"; voids the votes of {', '.join(event.voided_votes)}" if event.voided_votes else ""
            return "new_answer", f"answers ({event.label}){voided}: {preview(event.content, 120)}"
        case VoteCast():
            return "vote_cast", f"votes for {event.label}: {preview(event.reason, 120)}"
        case RuleViolated():
            return "action_refused", f"refused ({event.code}): {preview(event.message, 120)}"
        case FirstAnswersClosed():
            return "first_answers_closed", f"no longer waiting for the first answers of {', '.join(event.awaited)}"
        case RunResumed():
            return "session_resumed", "another process goes on with the run"
        case AskerSaid():
            return "asker_message", f"the asker says: {preview(event.message, 120)}"
        case InputRequired():
            return "input_required", f"waits for the asker ({event.kind}): {preview(event.text, 120)}"
        case InputGiven():
            return "input_given", f"the asker decided ({event.kind}): {preview(event.text, 120)}"
        case BudgetReached():
            return "budget_reached", f"no answer is begun any more: {event.message}"
        case BudgetRaised():
            return "budget_raised", f"the budget was raised to max_usd {event.max_usd:g}"
        case FinishRequested():
            return "finish_requested", "somebody asked to finish with what is there"
        case AgentDropped():
            name = "agent_timeout" if event.reason == "timeout" else "agent_error"
            return name, f"falls out ({event.reason}): {preview(event.message, 120)}"
        case _:
            return _told_end(event)


def _told_end(event: Event) -> tuple[str, str] | None:
    match event:
        case WinnerChosen():
            early = ", decided early" if event.early else ""
            return "final_agent_selected", f"wins with {event.label} ({event.outcome}{early})"
        case PresentationStarted():
            return "final_round_start", "writes the final answer"
        case PresentationFailed():
            return "final_answer_failed", f"could not write it ({event.reason}): {preview(event.message, 120)}"
        case AnswerPresented():
            how = "its answer stands" if event.reused else "has written"
            return "final_answer", f"{how}: {preview(event.answer, 120)}"
        case AnswerEvaluated():
            verdict = "sufficient" if event.sufficient else "insufficient"
            return "final_answer_judged", f"judges it {verdict}: {preview(event.reason, 120)}"
        case RunCompleted():
            return "session_end", f"completed ({event.outcome})"
        case RunFailed():
            best = f"; best answer so far: {event.winner}'s" if event.winner else ""
            return "session_end", f"failed ({event.reason}): {preview(event.message, 300)}{best}"
        case RunCancelled():
            return "session_end", "cancelled"
        case RunTimedOut():
            return "session_end", f"timed out: {event.message}"
        case _:
            return None
