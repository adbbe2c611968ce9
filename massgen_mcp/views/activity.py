"""What goes on at this moment, for live displays, beside the snapshot: what each agent is doing and just writing, and
in one plain sentence where the run stands.
"""

from dataclasses import dataclass, field, replace
from typing import Self, assert_never

from massgen_mcp.events.agent_work import (
    CallEvent,
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
from massgen_mcp.events.record import LogRecord
from massgen_mcp.run_state.agents import AgentState
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.views.names import join_few, name_agent
from massgen_mcp.views.sentences import WORKFLOW_TOOLS, sentence_of
from massgen_mcp.views.votes_text import votes_won

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
        if not isinstance(event, CallEvent):
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


def story(run: RunState, doing: Activities) -> str:
    """What the team is at, and what happened that a person should know."""
    text = _sentences(run, doing)
    lost = [f"{agent.info.id} failed ({agent.dropped.reason})" for agent in run.agents.values() if agent.dropped]
    return f"{text}." if not lost or run.end is not None else f"{text}; {join_few(lost)}."


def _sentences(run: RunState, doing: Activities) -> str:
    if run.state in TERMINAL_STATES:
        return f"The run is {run.state.replace('_', ' ')}"
    if (asked := run.input_required) is not None:
        if asked.kind == "budget_reached":
            return "The next call would exceed the budget: raise it, or finish with the existing answers"
        return f"{name_agent(run, asked.agent) if asked.agent else 'The team'} has a question for you"
    match run.state:
        case "queued":
            return "The run is queued"
        case "interrupted" if run.moved:
            return f"The run was {run.moved}"
        case "interrupted":
            return "The run was interrupted; continue it with `massgen resume`"
        case _:
            return f"{_again(run)}{_phase(run, doing)}"


def _again(run: RunState) -> str:
    if run.attempt == 1:
        return ""
    return f"Attempt {run.attempt}, because the previous answer was insufficient: "


def _phase(run: RunState, doing: Activities) -> str:
    match run.phase:
        case "answering":
            return _answering(run)
        case "voting":
            return _voting(run, doing) if run.winner is None else _won(run, "is about to write the final answer")
        case "presenting":
            return _won(run, "writes the final answer")
        case "evaluating":
            return _won(run, "checks the final answer")


def _answering(run: RunState) -> str:
    live = _live(run)
    waited = [agent.info.id for agent in live if not agent.answers]
    if len(live) == 1:
        return f"{live[0].info.id} is writing the answer"
    if len(waited) == len(live):
        return f"{len(live)} agents are writing their first answers"
    if not waited:
        return "All have answered"
    return f"{len(live) - len(waited)} of {len(live)} have answered; {join_few(waited)} {_are(waited)} still writing"


def _voting(run: RunState, doing: Activities) -> str:
    stage = run.coordination.stage
    if stage is not None and stage.kind == "test":
        return "The answers differ; the team is writing and running tests"
    if run.coordination.run_off is not None:
        return "The votes are tied; a run-off decides"
    live = _live(run)
    if len(live) == 1:
        return f"{live[0].info.id} has answered"
    begun = (
        "The agents have stopped writing"
        if run.budget_reached or run.coordination.finish_requested
        else "All have answered"
    )
    improving = [
        agent.info.id
        for agent in live
        if agent.status == "streaming" and agent.answers and doing.of(agent.info.name).writing.strip()
    ]
    if improving:
        number = max(agent.rounds for agent in live if agent.info.id in improving)
        what = "its answer" if len(improving) == 1 else "their answers"
        again = " again" if number > 2 else ""
        return f"{begun}; {join_few(improving)} {_are(improving)} improving {what}{again}"
    open_ones = [agent.info.id for agent in live if agent.info.name not in run.votes]
    if not open_ones:
        return "All have voted"
    if not run.votes:
        void = " again, because there is a new answer" if run.void_votes else ""
        return f"{begun}; now they read each other's answers and vote{void}"
    return f"{len(run.votes)} of {len(live)} have voted; {join_few(open_ones)} {_are(open_ones)} still deciding"


def _won(run: RunState, what: str) -> str:
    if run.winner is None:
        return f"The winner {what}"
    who = name_agent(run, run.winner.agent)
    won = votes_won(run)
    return f"{who} won with {won} and {what}" if won else f"{who} {what}"


def _live(run: RunState) -> list[AgentState]:
    return [agent for agent in run.agents.values() if agent.dropped is None]


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"
