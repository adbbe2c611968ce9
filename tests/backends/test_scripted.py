"""The scripted backend: the same script, the same run, and nobody called."""

import json
from typing import Any

import anyio
import pytest

from massgen_mcp.backends.base import (
    AssistantMessage,
    Message,
    ModelRequest,
    Part,
    TextPart,
    ToolResultMessage,
    ToolSpec,
    UsagePart,
    UserMessage,
)
from massgen_mcp.backends.scripted import ScriptedBackend
from massgen_mcp.config.models.backends import ScriptedBackendConfig, ScriptStep
from massgen_mcp.errors import BackendError
from massgen_mcp.markers import marked
from tests.backends.wires import calls_in, stop_of, text_in

NEW_ANSWER = ToolSpec("new_answer", "Answer.", {"type": "object"})
VOTE = ToolSpec("vote", "Vote.", {"type": "object"})
LOOK = ToolSpec("look", "Look.", {"type": "object"})

BALLOT = """\
<question 0123456789abcdef>
Which city is the capital of France?
</question 0123456789abcdef>

These are the current answers:

<answer name="agent2" 0123456789abcdef>
It is Lyon,
and it is large.
</answer 0123456789abcdef>

<answer name="agent3" 0123456789abcdef>
It is Paris.
</answer 0123456789abcdef>

<answer name="agent1" yours 0123456789abcdef>
It is Nice.
</answer 0123456789abcdef>"""


def scripted(*steps: dict[str, Any], **settings: Any) -> ScriptedBackend:
    script = tuple(ScriptStep(**step) for step in steps)
    return ScriptedBackend(ScriptedBackendConfig(type="scripted", script=script, **settings))


async def ask(
    backend: ScriptedBackend, *messages: Message, tools: tuple[ToolSpec, ...] = (NEW_ANSWER, VOTE)
) -> list[Part]:
    request = ModelRequest("system", messages or (UserMessage(BALLOT),), tools)
    return [part async for part in backend.stream(request)]


def only_call(parts: list[Part]) -> tuple[str, dict[str, Any]]:
    (call,) = calls_in(parts)
    assert stop_of(parts).reason == "tool_calls"
    return call.name, json.loads(call.arguments)


async def test_steps_are_worked_off_one_per_call() -> None:
    backend = scripted({"answer": "Paris"}, {"call": "look", "arguments": {"where": "up"}}, {"say": "Hm."})
    assert only_call(await ask(backend)) == ("new_answer", {"content": "Paris"})
    assert only_call(await ask(backend)) == ("look", {"where": "up"})
    said = await ask(backend)
    assert text_in(said) == "Hm."
    assert stop_of(said).reason == "end"


@pytest.mark.parametrize(
    ("wish", "name"),
    [("first", "agent2"), ("last", "agent1"), ("own", "agent1"), ("Nice", "agent1"), ("agent9", "agent9")],
)
async def test_a_vote_finds_its_answer_on_the_ballot(wish: str, name: str) -> None:
    arguments = {"agent_id": name, "reason": "because"}
    assert only_call(await ask(scripted({"vote": wish, "reason": "because"}))) == ("vote", arguments)


async def test_a_vote_says_what_else_says_the_same() -> None:
    step = {"vote": "own", "reason": "because", "same_as": ["Lyon", "Paris"]}
    arguments = {"reason": "because", "agent_id": "agent1", "same_as": ["agent2", "agent3"]}
    assert only_call(await ask(scripted(step))) == ("vote", arguments)


async def test_only_the_ballot_shown_last_counts() -> None:
    newer = ToolResultMessage("call_1", "look", marked("answer", "It is Metz.", "", name="agent4"))
    told = AssistantMessage(marked("answer", "It is Metz, too.", "", name="agent5"))
    parts = await ask(scripted({"vote": "Metz"}, {"vote": "Paris"}), UserMessage(BALLOT), newer, told)
    assert only_call(parts)[1]["agent_id"] == "agent4"


async def test_without_a_script_it_answers_votes_and_presents() -> None:
    backend = scripted(model="demo")
    question = "demo's answer to: Which city is the capital of France?"
    assert only_call(await ask(backend)) == ("new_answer", {"content": question})
    assert only_call(await ask(backend))[1]["agent_id"] == "agent2", "the first in alphabetical order"
    assert text_in(await ask(backend, tools=(LOOK,))) == question
    assert text_in(await ask(scripted(presentation="All told: Paris."), tools=())) == "All told: Paris."


async def test_a_long_question_is_cut() -> None:
    parts = await ask(scripted(model="m"), UserMessage("x" * 500))
    assert only_call(parts)[1]["content"] == "m's answer to: " + "x" * 200


async def test_a_presentation_leaves_coordination_steps_alone() -> None:
    backend = scripted({"answer": "Paris"}, {"vote": "own"}, {"say": "In full: Paris."})
    await ask(backend)
    assert text_in(await ask(backend, tools=())) == "Paris"
    assert only_call(await ask(backend))[1]["agent_id"] == "agent1"
    assert text_in(await ask(backend, tools=())) == "In full: Paris."


async def test_a_step_is_done_even_where_it_breaks_the_rules() -> None:
    assert only_call(await ask(scripted({"vote": "first"}), tools=(NEW_ANSWER,)))[0] == "vote"
    assert only_call(await ask(scripted({"answer": "again"}), tools=(VOTE,)))[0] == "new_answer"


@pytest.mark.parametrize(
    ("kind", "reason", "retryable"),
    [
        ("auth", "auth", False),
        ("quota_exhausted", "quota_exhausted", False),
        ("model_not_found", "model_not_found", False),
        ("rate_limited", "rate_limited", True),
        ("unreachable", "unreachable", True),
        ("provider_error", "provider_error", True),
        ("broken_stream", "provider_error", True),
    ],
)
async def test_failures_look_like_a_providers(kind: str, reason: str, retryable: bool) -> None:
    heard: list[Part] = []
    request = ModelRequest("system", (UserMessage(BALLOT),))
    with pytest.raises(BackendError) as caught:
        heard.extend([part async for part in scripted({"fail": kind}).stream(request)])
    assert (caught.value.reason, caught.value.retryable) == (reason, retryable)


async def test_a_broken_stream_says_something_first() -> None:
    stream = scripted({"fail": "broken_stream"}).stream(ModelRequest("system", (UserMessage("?"),)))
    assert isinstance(await anext(stream), TextPart)
    with pytest.raises(BackendError):
        await anext(stream)


async def test_a_hanging_model_can_be_cancelled() -> None:
    with anyio.move_on_after(0.05) as scope:
        await ask(scripted({"hang": True}))
    assert scope.cancelled_caught


async def test_text_comes_in_pieces_and_is_counted() -> None:
    parts = await ask(scripted({"say": "word " * 20}))
    pieces = [part.text for part in parts if isinstance(part, TextPart)]
    assert len(pieces) == 5
    assert "".join(pieces) == "word " * 20
    (usage,) = [part for part in parts if isinstance(part, UsagePart)]
    assert (usage.input_tokens, usage.output_tokens) == (-(-len("system" + BALLOT) // 4), 25)


async def test_two_instances_of_one_script_do_the_same() -> None:
    steps: tuple[dict[str, Any], ...] = ({"answer": "Paris"}, {"vote": "last"})
    one, other = scripted(*steps), scripted(*steps)
    for _ in range(4):
        assert await ask(one) == await ask(other)
