"""Conversations as callers write them (dictionaries of Chat Completions) into the messages of a backend, and back.

Parsed once, here; whatever a provider would refuse later is refused with its place in the list.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from massgen_mcp.backends.base import (
    AssistantMessage,
    JsonObject,
    Message,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from massgen_mcp.errors import MassgenError

_NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Parsed:
    """`system` is None when no message has that role; several are joined by blank lines."""

    system: str | None
    messages: tuple[Message, ...]


def parse_messages(given: Sequence[Mapping[str, Any]], *, after: Sequence[Message] = ()) -> Parsed:
    """Read messages that follow `after`.

    Raises `MassgenError("invalid_arguments")` for an unknown role, content that is not text, a tool's result that
    belongs to no call, and calls that have no result when somebody speaks again.
    """
    system: list[str] = []
    found: list[Message] = []
    open_calls = _open_calls(after)
    for place, message in enumerate(given):
        where = f"messages[{place}]"
        role = message.get("role")
        if role == "system":
            system.append(_text(message, where))
            continue
        if role == "tool":
            found.append(_tool_result(message, open_calls, where))
            continue
        if open_calls:
            waiting = ", ".join(open_calls)
            raise _wrong(where, f"tool calls without a result: {waiting}; add_tool_result gives them one")
        if role == "user":
            found.append(UserMessage(_text(message, where)))
        elif role == "assistant":
            reply = _assistant(message, where)
            open_calls = {call.id: call.name for call in reply.tool_calls}
            found.append(reply)
        else:
            raise _wrong(where, "role is one of: system, user, assistant, tool")
    if open_calls:
        raise _wrong(f"messages[{len(given)}]", f"missing: the results of tool calls {', '.join(open_calls)}")
    if not found:
        raise _wrong("messages", "there is nothing to reply to")
    return Parsed("\n\n".join(system) if system else None, tuple(found))


def parse_tools(given: Sequence[Mapping[str, Any]]) -> tuple[ToolSpec, ...]:
    """Read tools of the form `{"type": "function", "function": {...}}`; the inner form alone will do too."""
    return tuple(_tool(tool, f"tools[{place}]") for place, tool in enumerate(given))


def as_dictionary(message: Message) -> dict[str, Any]:
    """The message as a caller would write it."""
    match message:
        case UserMessage():
            return {"role": "user", "content": message.text}
        case ToolResultMessage():
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
        case AssistantMessage():
            calls = [call_dictionary(call) for call in message.tool_calls]
            return {"role": "assistant", "content": message.text, **({"tool_calls": calls} if calls else {})}


def call_dictionary(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _open_calls(messages: Sequence[Message]) -> dict[str, str]:
    """Calls that nobody has answered yet: id → name of the tool."""
    opened: dict[str, str] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            opened = {call.id: call.name for call in message.tool_calls}
        elif isinstance(message, ToolResultMessage):
            opened.pop(message.call_id, None)
    return opened


def _text(message: Mapping[str, Any], where: str) -> str:
    """The content: text, or a list of parts that are all text."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [_text_part(part, where) for part in cast("list[object]", content)]
        return "".join(parts)
    raise _wrong(where, "content must be text")


def _text_part(part: object, where: str) -> str:
    entry = _mapping(part)
    text = entry.get("text")
    if entry.get("type") not in ("text", "input_text", "output_text") or not isinstance(text, str):
        raise _wrong(where, "only text can be sent; images, sound and files cannot")
    return text


def _tool_result(message: Mapping[str, Any], open_calls: dict[str, str], where: str) -> ToolResultMessage:
    call_id = message.get("tool_call_id")
    if not isinstance(call_id, str) or call_id not in open_calls:
        waiting = ", ".join(open_calls) or "none"
        raise _wrong(where, f"tool_call_id {str(call_id)[:80]!a} belongs to no open call; open: {waiting}")
    return ToolResultMessage(call_id, open_calls.pop(call_id), _text(message, where))


def _assistant(message: Mapping[str, Any], where: str) -> AssistantMessage:
    calls: object = message.get("tool_calls") or []
    if not isinstance(calls, list | tuple):
        raise _wrong(where, "tool_calls must be a list")
    parsed = tuple(_call(call, where) for call in cast("Sequence[object]", calls))
    if message.get("content") is None and parsed:
        return AssistantMessage("", parsed)
    return AssistantMessage(_text(message, where), parsed)


def _call(call: object, where: str) -> ToolCall:
    outer = _mapping(call)
    function = _mapping(outer.get("function"))
    call_id, name, arguments = outer.get("id"), function.get("name"), function.get("arguments", "{}")
    if isinstance(arguments, Mapping):
        arguments = json.dumps(arguments, ensure_ascii=False)
    if not isinstance(call_id, str) or not isinstance(name, str) or not isinstance(arguments, str):
        raise _wrong(where, "a tool call is {'id', 'type': 'function', 'function': {'name', 'arguments'}}")
    return ToolCall(call_id, name, arguments)


def _tool(tool: Mapping[str, Any], where: str) -> ToolSpec:
    function = _mapping(tool.get("function", tool))
    name, description = function.get("name"), function.get("description", "")
    parameters = function.get("parameters", _NO_PARAMETERS)
    if not isinstance(name, str) or not name or not isinstance(description, str) or not isinstance(parameters, dict):
        raise _wrong(where, "a tool is {'type': 'function', 'function': {'name', 'description', 'parameters'}}")
    return ToolSpec(name, description, cast("JsonObject", parameters))


def _mapping(value: object) -> Mapping[str, object]:
    """`value` if it is a mapping, else an empty one, in which everything is missing."""
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _wrong(where: str, message: str) -> MassgenError:
    return MassgenError("invalid_arguments", f"{where}: {message}")
