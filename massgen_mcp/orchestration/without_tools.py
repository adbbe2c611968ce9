"""A request for a server that refuses tools: they are described in the text, and so are calls and results. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from massgen_mcp.backends.abilities import Abilities
from massgen_mcp.backends.base import (
    AssistantMessage,
    JsonObject,
    JsonValue,
    Message,
    ModelRequest,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from massgen_mcp.orchestration import prompts


def fitted(request: ModelRequest, abilities: Abilities) -> ModelRequest:
    """The same request, as far as the model takes it."""
    if not abilities.takes_tools and request.tools:
        return _in_text(request)
    return request if abilities.can_be_forced else replace(request, must_call_tool=False)


def _in_text(request: ModelRequest) -> ModelRequest:
    system = f"{request.system}\n\n{prompts.tools_as_text(request.tools)}"
    return replace(
        request,
        system=system,
        messages=tuple(_joined(request.messages)),
        tools=(),
        must_call_tool=False,
        reply_schema=_call_schema(request.tools) if request.must_call_tool else None,
    )


def _call_schema(tools: Iterable[ToolSpec]) -> JsonObject:
    """Of one call of these tools, as `written_calls` reads it."""
    calls: list[JsonValue] = [
        {
            "type": "object",
            "properties": {"name": {"const": tool.name}, "arguments": tool.parameters},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return {"anyOf": calls}


def _joined(messages: Iterable[Message]) -> Iterator[Message]:
    """Without calls and results, and with turns that alternate: templates of small models refuse anything else."""
    pending: str | None = None
    for message in messages:
        match message:
            case AssistantMessage():
                if pending is not None:
                    yield UserMessage(pending)
                calls = [prompts.written_call(call.name, call.arguments) for call in message.tool_calls]
                yield AssistantMessage("\n".join([*([message.text] if message.text else []), *calls]))
                pending = None
            case UserMessage() | ToolResultMessage():
                text = message.text
                if isinstance(message, ToolResultMessage):
                    text = prompts.written_result(message.name, text)
                pending = text if pending is None else f"{pending}\n\n{text}"
            case _:
                assert_never(message)
    if pending is not None:
        yield UserMessage(pending)
