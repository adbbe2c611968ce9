"""Every HTTP backend against aimock: what a model says arrives, and what goes out is what the API allows."""

import json
import time
from dataclasses import replace

import pytest

from massgen_mcp.backends.base import (
    AssistantMessage,
    Part,
    ReasoningPart,
    StopPart,
    TextPart,
    ToolResultMessage,
    UsagePart,
    UserMessage,
)
from massgen_mcp.errors import BackendError
from tests.backends.wires import KEY, LOOK, VOTE, WIRES, Wire, ask, calls_in, parts_of, reply_of, stop_of, text_in
from tests.wire_check import check_body
from tests.wire_double import Aimock

pytestmark = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)

LONG = "Paris has been the capital of France for most of a thousand years, with a few interruptions."
USAGE = {
    "prompt_tokens": 21, "completion_tokens": 7, "total_tokens": 28, "input_tokens": 21, "output_tokens": 7,
}  # fmt: skip


async def test_text_arrives_in_pieces_and_ends_with_the_models_own_stop(wire: Wire, aimock: Aimock) -> None:
    aimock.load({"match": {"userMessage": "capital"}, "response": {"content": LONG}})
    parts = await parts_of(wire.backend(aimock.url), ask("capital?"))
    assert text_in(parts) == LONG
    assert sum(isinstance(part, TextPart) for part in parts) > 1
    assert stop_of(parts).reason == "end"
    (request,) = aimock.requests
    assert request.path == wire.path
    check_body(request.path, request.body)


async def test_usage_is_the_providers_count(wire: Wire, aimock: Aimock) -> None:
    aimock.load({"match": {"userMessage": "capital"}, "response": {"content": "Paris", "usage": USAGE}})
    parts = await parts_of(wire.backend(aimock.url), ask("capital?"))
    (usage,) = [part for part in parts if isinstance(part, UsagePart)]
    assert (usage.input_tokens, usage.output_tokens) == (21, 7)
    assert usage.model == "some-model"


async def test_a_tool_call_arrives_whole_with_its_id_and_name(wire: Wire, aimock: Aimock) -> None:
    call = {"id": "call_77", "name": "vote", "arguments": {"agent_id": "agent2", "reason": "clear and complete"}}
    aimock.load({"match": {"toolName": "vote"}, "response": {"toolCalls": [call]}, "chunkSize": 3})
    parts = await parts_of(wire.backend(aimock.url), ask("Vote!", VOTE, must_call_tool=True))
    (got,) = calls_in(parts)
    assert (got.id, got.name) == ("call_77", "vote")
    assert json.loads(got.arguments) == call["arguments"]
    assert stop_of(parts).reason == "tool_calls"
    (request,) = aimock.requests
    check_body(request.path, request.body)
    assert request.body["tool_choice"] in ("required", {"type": "any"})


async def test_parallel_calls_and_their_results_make_a_second_turn(wire: Wire, aimock: Aimock) -> None:
    calls = [{"id": f"call_{n}", "name": "look", "arguments": {"where": f"room {n}"}} for n in (1, 2)]
    aimock.load(
        {"match": {"userMessage": "look around", "hasToolResult": False}, "response": {"toolCalls": calls}},
        {"match": {"userMessage": "go on"}, "response": {"content": "Both rooms are empty."}},
    )
    first = ask("look around", LOOK, VOTE)
    reply = await reply_of(wire.backend(aimock.url), first)
    assert [call.id for call in reply.tool_calls] == ["call_1", "call_2"]
    second = replace(
        first,
        messages=(
            *first.messages,
            AssistantMessage(reply.text, reply.tool_calls, reply.replay),
            ToolResultMessage("call_1", "look", "empty"),
            ToolResultMessage("call_2", "look", "no such room", is_error=True),
            UserMessage("go on"),
        ),
    )
    parts = await parts_of(wire.backend(aimock.url), second)
    assert text_in(parts) == "Both rooms are empty."
    for request in aimock.requests:
        check_body(request.path, request.body)


async def test_reasoning_is_told_apart_from_the_answer(wire: Wire, aimock: Aimock) -> None:
    aimock.load({"match": {"userMessage": "six"}, "response": {"content": "42", "reasoning": "six times seven"}})
    parts = await parts_of(wire.backend(aimock.url), ask("six by seven?"))
    assert text_in(parts) == "42"
    assert "".join(part.text for part in parts if isinstance(part, ReasoningPart)) == "six times seven"


async def test_all_settings_go_out_in_fields_the_api_knows(wire: Wire, aimock: Aimock) -> None:
    aimock.load({"match": {"userMessage": "capital"}, "response": {"content": "Paris"}})
    backend = wire.backend(
        aimock.url, temperature=0.5, top_p=0.9, max_output_tokens=100, reasoning_effort="low",
        extra_body={"service_tier": "auto"},
    )  # fmt: skip
    await parts_of(backend, ask("capital?", VOTE))
    (request,) = aimock.requests
    check_body(request.path, _without_sampling(request.body, wire))
    assert request.body["temperature"] == 0.5
    assert request.body["top_p"] == 0.9
    assert 100 in request.body.values()
    assert '"low"' in json.dumps(request.body)
    assert request.body["service_tier"] == "auto"


async def test_a_rate_limit_is_waited_out(wire: Wire, aimock: Aimock) -> None:
    limited = {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429, "retryAfter": 0}
    aimock.load(
        {"match": {"userMessage": "capital", "sequenceIndex": 0}, "response": limited},
        {"match": {"userMessage": "capital"}, "response": {"content": "Paris"}},
    )
    retries: list[BackendError] = []
    reply = await reply_of(wire.backend(aimock.url), ask("capital?"), retries=retries)
    assert reply.text == "Paris"
    assert [error.reason for error in retries] == ["rate_limited"]
    assert retries[0].retry_after == 0
    assert "slow down" in str(retries[0])


async def test_a_broken_server_is_asked_four_times_and_no_more(wire: Wire, aimock: Aimock) -> None:
    aimock.load(
        {"match": {}, "response": {"error": {"message": "out of order", "type": "server_error"}, "status": 500}}
    )
    with pytest.raises(BackendError, match="out of order") as caught:
        await reply_of(wire.backend(aimock.url), ask("capital?"))
    assert caught.value.reason == "provider_error"
    assert len(aimock.requests) == 4


async def test_a_refused_key_is_not_tried_again_and_not_told(wire: Wire, aimock: Aimock) -> None:
    refused = {"error": {"message": f"bad key {KEY}", "type": "authentication_error"}, "status": 401}
    aimock.load({"match": {}, "response": refused})
    with pytest.raises(BackendError, match=r"bad key \*\*\*") as caught:
        await reply_of(wire.backend(aimock.url), ask("capital?"))
    assert caught.value.reason == "auth"
    assert not caught.value.retryable
    assert len(aimock.requests) == 1


async def test_a_missing_model_is_named_together_with_its_address(wire: Wire, aimock: Aimock) -> None:
    with pytest.raises(BackendError) as caught:
        await reply_of(wire.backend(aimock.url), ask("nobody answers this"))
    assert caught.value.reason == "model_not_found"
    assert "some-model" in str(caught.value)
    assert aimock.url in str(caught.value)
    assert len(aimock.requests) == 1


async def test_a_broken_stream_is_an_error_not_a_short_answer(wire: Wire, aimock: Aimock) -> None:
    broken = {"response": {"content": LONG}, "chunkSize": 8, "latency": 20, "disconnectAfterMs": 90}
    aimock.load({"match": {"userMessage": "capital"}, **broken})
    heard: list[Part] = []
    with pytest.raises(BackendError) as caught:
        await parts_of(wire.backend(aimock.url), ask("capital?"), heard)
    assert LONG.startswith(text_in(heard))
    assert not any(isinstance(part, StopPart) for part in heard)
    assert caught.value.reason == "provider_error"
    assert caught.value.retryable


async def test_slow_tokens_cannot_outlast_the_deadline(wire: Wire, aimock: Aimock) -> None:
    aimock.load(
        {"match": {"userMessage": "warm up"}, "response": {"content": "ready"}},
        {
            "match": {"userMessage": "capital"},
            "response": {"content": LONG * 20},
            "chunkSize": 4,
            "streamingProfile": {"ttft": 10, "tps": 20},
        },
    )
    backend = wire.backend(aimock.url)
    await parts_of(backend, ask("warm up"))
    started = time.monotonic()
    with pytest.raises(BackendError, match="call_timeout_seconds") as caught:
        await reply_of(backend, ask("capital?"), deadline=0.4)
    assert caught.value.reason == "timeout"
    assert time.monotonic() - started < 2


async def test_an_unreachable_server_is_named(wire: Wire, free_tcp_port: int) -> None:
    root = f"http://127.0.0.1:{free_tcp_port}"
    retries: list[BackendError] = []
    with pytest.raises(BackendError, match=root) as caught:
        await reply_of(wire.backend(root), ask("capital?"), retries=retries)
    assert caught.value.reason == "unreachable"
    assert len(retries) == 3


def _without_sampling(body: dict[str, object], wire: Wire) -> dict[str, object]:
    """anthropic 2 has taken sampling out of its types; the API takes it."""
    hidden = ("temperature", "top_p") if wire.name == "claude" else ()
    return {name: value for name, value in body.items() if name not in hidden}
