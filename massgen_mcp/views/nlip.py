"""What agents, their tools and the caller say to each other, as messages of the Natural Language Interaction Protocol
(ECMA-430), made by the standard's own package. Imported where a config asks for them. Pure.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from nlip_sdk.nlip import NLIP_Message  # pyright: ignore[reportMissingTypeStubs] - it has none

from massgen_mcp.events.agent_work import ModelReplied, ToolFinished
from massgen_mcp.events.coordination import AnswerSubmitted, VoteCast
from massgen_mcp.events.parts import ToolCallRecord
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import CallerMessage, InputGiven, InputRequired, RunCompleted, RunStarted
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.names import name_agent
from massgen_mcp.views.sentences import WORKFLOW_TOOLS

CALLER, TEAM = "caller", "team"
TEXT = {"format": "text", "subformat": "english"}


@dataclass(frozen=True, slots=True)
class NlipMessage:
    """Agents stand as the record calls them, a tool as `tool:NAME`."""

    sender: str
    to: str
    message: Mapping[str, object]
    """Without its submessages."""


def nlip_line(sent: NlipMessage, record: LogRecord, run: RunState) -> str:
    """The message on one line: the run is its conversation, and `route` says who says it to whom, and when."""
    moment = datetime.fromtimestamp(record.time, UTC).isoformat(timespec="milliseconds")
    route = {"from": name_agent(run, sent.sender), "to": name_agent(run, sent.to), "time": moment}
    parts = [
        {"format": "token", "subformat": "conversation", "content": run.run_id},
        {**_json(route), "label": "route"},
    ]
    return NLIP_Message.model_validate({**sent.message, "submessages": parts}).to_json()


def nlip_messages(record: LogRecord) -> Iterator[NlipMessage]:
    """What an event is that somebody said; nothing of what is no message."""
    event = record.event
    match event:
        case RunStarted():
            yield _text_message(CALLER, TEAM, event.question)
        case CallerMessage():
            yield _text_message(CALLER, TEAM, event.message)
        case InputRequired():
            yield _text_message(event.agent or TEAM, CALLER, event.text)
        case InputGiven():
            yield _text_message(CALLER, TEAM, event.text)
        case ModelReplied():
            yield from (
                _call_message(event.agent, call) for call in event.tool_calls if call.name not in WORKFLOW_TOOLS
            )
        case ToolFinished():
            kind = {"format": "error", "subformat": "text"} if event.is_error else TEXT
            result = {**kind, "content": event.result, "label": event.call_id}
            yield NlipMessage(f"tool:{event.name}", event.agent, result)
        case AnswerSubmitted():
            yield _text_message(event.agent, TEAM, event.content, event.label)
        case VoteCast():
            yield NlipMessage(event.agent, TEAM, _json({"vote": event.label, "reason": event.reason}))
        case RunCompleted():
            yield _text_message(event.winner, CALLER, event.answer)
        case _:
            pass  # not a message


def _text_message(sender: str, to: str, text: str, label: str | None = None) -> NlipMessage:
    return NlipMessage(sender, to, {**TEXT, "content": text, "label": label})


def _json(content: object) -> dict[str, object]:
    return {"format": "structured", "subformat": "JSON", "content": content}


def _call_message(agent: str, call: ToolCallRecord) -> NlipMessage:
    try:
        arguments: object = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = call.arguments
    asked = _json({"tool": call.name, "arguments": arguments})
    return NlipMessage(agent, f"tool:{call.name}", {**asked, "label": call.id})
