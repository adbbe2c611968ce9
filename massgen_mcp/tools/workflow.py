"""The actions that end a round, read from what a model wrote.

Parses only; whether an action is allowed is for the coordination rules to say.
"""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field

from massgen_mcp.backends.base import ToolCall
from massgen_mcp.tools.base import Arguments, WellFormedText, decoded, parse_arguments


class NewAnswer(Arguments):
    content: WellFormedText


def _as_list(names: object) -> object:
    """Names in one text, or numbers, as some models write them, are names all the same."""
    if isinstance(names, str):
        return re.findall(r"(?:agent|answer)[ \t_-]?\d+|[\w.-]+", names, re.IGNORECASE)
    return [names] if isinstance(names, int) else names


class VoteArguments(Arguments, coerce_numbers_to_str=True):
    """In the order in which a model should write it: a reason that comes first leads to the choice."""

    reason: WellFormedText = ""
    agent_id: WellFormedText
    same_as: Annotated[tuple[WellFormedText, ...] | None, BeforeValidator(_as_list)] = None


MOST_TESTS = 3


class TestArguments(Arguments):
    __test__ = False
    title: Annotated[str, Field(max_length=300)]
    script: Annotated[str, Field(max_length=4_000)]
    expected: Annotated[str, Field(max_length=2_000)]


class SubmittedTests(Arguments):
    tests: Annotated[tuple[TestArguments, ...], Field(max_length=MOST_TESTS)]


class SubmittedOutputs(Arguments):
    outputs: Annotated[tuple[Annotated[str, Field(max_length=2_000)], ...], Field(max_length=MOST_TESTS)]


class ClaimArguments(Arguments):
    claim: Annotated[WellFormedText, Field(max_length=1_000)]
    answers: Annotated[tuple[WellFormedText, ...], BeforeValidator(_as_list)] = ()
    contradicted_by: Annotated[tuple[WellFormedText, ...], BeforeValidator(_as_list)] = ()
    script: Annotated[WellFormedText, Field(max_length=4_000)] = ""
    prints: Annotated[WellFormedText, Field(max_length=2_000)] = ""


class Synthesis(Arguments):
    content: WellFormedText
    claims: Annotated[tuple[ClaimArguments, ...], Field(max_length=200)]


WorkflowCall = NewAnswer | VoteArguments | SubmittedTests | SubmittedOutputs | Synthesis
_ACTIONS: Mapping[str, type[WorkflowCall]] = {
    "new_answer": NewAnswer,
    "vote": VoteArguments,
    "submit_tests": SubmittedTests,
    "submit_outputs": SubmittedOutputs,
    "submit_synthesis": Synthesis,
}


def parse_action(call: ToolCall) -> WorkflowCall:
    """A call of one of `WORKFLOW_TOOLS`. Raises `ToolRefused` in words for the model."""
    return parse_arguments(_ACTIONS[call.name], decoded(call))
