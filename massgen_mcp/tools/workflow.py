"""The two actions that end a round, read from what a model wrote.

Parses only; whether an action is allowed is for the coordination rules to say.
"""

import re
from typing import Annotated

from pydantic import BeforeValidator

from massgen_mcp.backends.base import ToolCall
from massgen_mcp.tools.base import Arguments, Text, decoded, parse_arguments


class NewAnswer(Arguments):
    content: Text


def _as_list(names: object) -> object:
    """Names in one text, as some models write them, are names all the same."""
    return re.findall(r"[\w.-]+", names) if isinstance(names, str) else names


class VoteArguments(Arguments):
    """In the order in which a model should write it: whoever gives the reason first chooses by it."""

    reason: Text
    agent_id: Text
    same_as: Annotated[tuple[Text, ...] | None, BeforeValidator(_as_list)] = None


def parse_action(call: ToolCall) -> NewAnswer | VoteArguments:
    """A call of `new_answer` or `vote`. Raises `ToolRefused` in words for the model."""
    return parse_arguments(NewAnswer if call.name == "new_answer" else VoteArguments, decoded(call))
