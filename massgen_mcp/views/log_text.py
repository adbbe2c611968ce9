"""`massgen.log`: one plain line per event that a person following a run wants to read. No control characters."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from massgen_mcp.events import (
    AgentDropped,
    AnswerEvaluated,
    AnswerPresented,
    AnswerSubmitted,
    AskerSaid,
    AttemptStarted,
    BallotChanged,
    BudgetMark,
    BudgetRaised,
    BudgetReached,
    Event,
    FinishRequested,
    FirstAnswersClosed,
    InputGiven,
    InputRequired,
    LogRecord,
    MessagesShown,
    ModelCallAborted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelCallWaiting,
    ModelReplied,
    PresentationFailed,
    PresentationStarted,
    ReservationExceeded,
    RoundStarted,
    RuleViolated,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
    RunTimedOut,
    ToolFinished,
    UnknownEvent,
    VoteCast,
    WinnerChosen,
)
from massgen_mcp.views.spent import dollars

PREVIEW = 200


def log_line(record: LogRecord) -> str | None:
    """The line for a record; None for events that only matter to live displays."""
    told = _told(record.event)
    if told is None:
        return None
    level, text = told
    moment = datetime.fromtimestamp(record.time, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    return plain(f"{moment} | {level} | {text}")


def plain(text: str) -> str:
    """One line without control characters: what a model or a tool wrote can do nothing to a terminal."""
    return "".join(character if character.isprintable() else " " for character in text)


def plain_lines(texts: Iterable[str]) -> Iterator[str]:
    """Texts of several lines as plain lines with their ends."""
    return (f"{plain(line)}\n" for text in texts for line in text.splitlines())


def preview(text: str, limit: int = PREVIEW) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def _told(event: Event) -> tuple[str, str] | None:  # noqa: C901 - one line per event
    match event:
        case RunStarted():
            team = ", ".join(f"{agent.name} = {agent.id} ({agent.backend}/{agent.model})" for agent in event.agents)
            return "INFO", f"run {event.run_id} started: {preview(event.question)} | team: {team}"
        case AttemptStarted():
            why = f" because {preview(event.reason)}; now: {preview(event.instructions)}" if event.reason else ""
            return "INFO", f"attempt {event.attempt} begins{why}"
        case AnswerPresented():
            how = "reuses its answer" if event.reused else "has written the final answer"
            return "INFO", f"{event.agent}: {how}: {preview(event.answer)}"
        case AnswerEvaluated():
            verdict = "sufficient" if event.sufficient else "insufficient"
            return "INFO", f"{event.agent}: judges the final answer {verdict}: {preview(event.reason)}"
        case RunResumed():
            again = f"; these calls are made once more: {', '.join(event.in_flight)}" if event.in_flight else ""
            return "WARNING", f"another process goes on with the run{again}"
        case AskerSaid():
            return "INFO", f"the asker says: {preview(event.message)}"
        case InputRequired():
            return "WARNING", f"waits for the asker ({event.kind}): {preview(event.text)}"
        case InputGiven():
            return "INFO", f"the asker decided ({event.kind}): {preview(event.text)}"
        case BudgetMark():
            told = f"{dollars(event.usd)} and {event.tokens:,} tokens"
            return "INFO", f"{event.percent} % of the budget is spent: {told}"
        case BudgetReached():
            return "WARNING", f"{event.agent}: {event.message} No answer is begun any more; what is there is voted on"
        case BudgetRaised():
            return "INFO", f"the budget was raised to max_usd {event.max_usd:g}"
        case ReservationExceeded():
            usd = "an unknown sum" if event.usd is None else dollars(event.usd)
            told = f"{usd} and {event.tokens:,} tokens"
            aside = f"{dollars(event.reserved_usd)} and {event.reserved_tokens:,} tokens"
            return "WARNING", f"{event.agent}: {event.call_id} used {told}; at the worst it should have been {aside}"
        case FinishRequested():
            return "INFO", "asked to finish with the answers that are there"
        case RoundStarted():
            shown = ", ".join(f"{entry.name} = {entry.label}" for entry in event.ballot) or "no answers yet"
            return "INFO", f"{event.agent}: round {event.round} begins; sees {shown}"
        case MessagesShown():
            return "DEBUG", f"{event.agent}: is shown what the asker says"
        case BallotChanged():
            return "INFO", f"{event.agent}: is shown the new answers"
        case ModelCallStarted():
            return "DEBUG", f"{event.agent}: model call {event.call_id}"
        case ModelCallWaiting():
            return "DEBUG", f"{event.agent}: {event.call_id} waits for its turn ({event.obstacle})"
        case ModelReplied():
            tools = ", ".join(call.name for call in event.tool_calls) or "no tool"
            price = "price unknown" if event.cost.usd is None else f"{dollars(event.cost.usd)} ({event.cost.source})"
            told = f"{event.agent}: {event.model} replied in {event.seconds:.2f} s for {price}, calling {tools}"
            return "DEBUG", told
        case ModelCallRetried():
            return "WARNING", (
                f"{event.agent}: try {event.attempt} of {event.call_id} failed ({event.reason}: "
                f"{preview(event.message)}); next try in {event.wait_seconds:.1f} s"
            )
        case ModelCallFailed():
            return "ERROR", f"{event.agent}: {event.call_id} failed ({event.reason}): {preview(event.message)}"
        case ModelCallAborted():
            return "DEBUG", f"{event.agent}: {event.call_id} was cut off; it could not count any more"
        case ToolFinished():
            return "DEBUG", f"{event.agent}: {event.name} {'failed' if event.is_error else 'done'}"
        case RuleViolated():
            return "WARNING", f"{event.agent}: {event.code}: {preview(event.message)}"
        case AnswerSubmitted():
            return "INFO", f"{event.agent}: new answer {event.label}: {preview(event.content)}"
        case VoteCast():
            return "INFO", f"{event.agent}: votes for {event.label}: {preview(event.reason)}"
        case FirstAnswersClosed():
            return "WARNING", f"no longer waiting for the first answers of {', '.join(event.awaited)}"
        case AgentDropped():
            return "ERROR", f"{event.agent}: dropped ({event.reason}): {preview(event.message)}"
        case WinnerChosen():
            return "INFO", f"winner: {event.agent} with {event.label} ({event.outcome}); votes: {event.votes}"
        case PresentationStarted():
            return "INFO", f"{event.agent}: writes the final answer"
        case PresentationFailed():
            return (
                "ERROR",
                f"{event.agent}: could not write the final answer ({event.reason}): {preview(event.message)}",
            )
        case RunCompleted():
            level, files = ("ERROR", f"; its files are not kept: {event.unkept}") if event.unkept else ("INFO", "")
            return level, f"completed: {event.winner} ({event.outcome}): {preview(event.answer)}{files}"
        case RunFailed():
            best = f"; best answer so far: {event.winner or 'none'}"
            return "ERROR", f"failed ({event.reason}): {preview(event.message)}{best}"
        case RunCancelled():
            return "WARNING", f"cancelled; best answer so far: {event.winner or 'none'}"
        case RunTimedOut():
            return "ERROR", f"timed out: {event.message}; best answer so far: {event.winner or 'none'}"
        case UnknownEvent():
            return "WARNING", f"{event.type}: an event of a newer massgen-mcp, which this one does not know"
        case _:
            return None
