"""The two actions that end a round, read from what a model wrote.

Parses only; whether an action is allowed is for the coordination rules to say.
"""

from massgen_mcp.backends.base import ToolCall
from massgen_mcp.tools.base import Arguments, Text, decoded, parse_arguments

WORKFLOW_TOOLS = ("new_answer", "vote")


class NewAnswer(Arguments):
    content: Text


class Vote(Arguments):
    agent_id: Text
    reason: Text


def parse_action(call: ToolCall) -> NewAnswer | Vote:
    """A call of one of `WORKFLOW_TOOLS`. Raises `ToolRefused` in words for the model."""
    return parse_arguments(NewAnswer if call.name == "new_answer" else Vote, decoded(call))
