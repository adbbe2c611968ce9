"""The two actions that end a round, read from what a model wrote.

Parses only; whether an action is allowed is for the coordination rules to say.
"""

import json
from dataclasses import dataclass
from difflib import get_close_matches
from typing import cast

from massgen_mcp.backends.base import JsonObject, ToolCall

WORKFLOW_TOOLS = ("new_answer", "vote")


@dataclass(frozen=True, slots=True)
class NewAnswer:
    content: str


@dataclass(frozen=True, slots=True)
class Vote:
    name: str
    reason: str


class BadArguments(Exception):
    """A tool call's arguments are not what the tool takes; the message is for the model."""


def parse_arguments(call: ToolCall) -> JsonObject:
    """The arguments as an object. Raises `BadArguments` for anything else than one JSON object."""
    try:
        arguments: object = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"The arguments of `{call.name}` are not valid JSON ({error}). Call it again.") from error
    if not isinstance(arguments, dict):
        raise BadArguments(f"The arguments of `{call.name}` must be a JSON object. Call it again.")
    return cast(JsonObject, arguments)


def parse_action(call: ToolCall) -> NewAnswer | Vote:
    """A call of `new_answer` or `vote`. Raises `BadArguments`."""
    arguments = parse_arguments(call)
    if call.name == "new_answer":
        (content,) = _texts(call.name, arguments, ("content",))
        return NewAnswer(content)
    name, reason = _texts(call.name, arguments, ("agent_id", "reason"))
    return Vote(name, reason)


def _texts(tool: str, arguments: JsonObject, names: tuple[str, ...]) -> list[str]:
    for unknown in arguments.keys() - set(names):
        nearest = get_close_matches(unknown, names, 1)
        hint = f"; did you mean `{nearest[0]}`?" if nearest else ""
        raise BadArguments(f"`{tool}` has no argument `{unknown[:60]}`{hint}")
    texts: list[str] = []
    for name in names:
        value = arguments.get(name)
        if not isinstance(value, str):
            raise BadArguments(f"`{tool}` needs `{name}` as a string.")
        texts.append(value)
    return texts
