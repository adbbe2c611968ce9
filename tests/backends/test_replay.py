"""What a reply leaves for the next turn: reasoning goes back as it came, and broken calls go back as valid ones."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from massgen_mcp.backends import chatcompletion, claude, gemini, openai_responses
from massgen_mcp.backends.base import AssistantMessage, ModelRequest, ToolCall, ToolResultMessage, UserMessage
from massgen_mcp.backends.calling import ModelReply
from massgen_mcp.backends.http import Endpoint
from massgen_mcp.backends.redacted import RedactedBackend
from massgen_mcp.redaction import Redactor
from tests.backends.wires import CHAT, CLAUDE, LOOK, RESPONSES, VOTE, Wire, ask, reply_of
from tests.raw_double import raw_server, reply, sse
from tests.wire_check import check_body

ENDPOINT = Endpoint("some-model", "key")
BODIES = (
    ("/v1/chat/completions", chatcompletion.request_body),
    ("/v1/responses", openai_responses.request_body),
    ("/v1/messages", claude.request_body),
    ("/v1beta/models/some-model:streamGenerateContent", gemini.request_body),
)


async def answer_to(wire: Wire, *events: dict[str, Any]) -> ModelReply:
    async with raw_server(reply(sse(*events))) as server:
        return await reply_of(wire.backend(server.url), ask("look", LOOK))


def next_turn(earlier: ModelReply) -> ModelRequest:
    results = [ToolResultMessage(call.id, call.name, "empty") for call in earlier.tool_calls]
    told = AssistantMessage(earlier.text, earlier.tool_calls, earlier.replay)
    return replace(ask("look", LOOK), messages=(UserMessage("look"), told, *results))


async def test_claudes_thinking_goes_back_signed_and_in_order() -> None:
    start, stop = CLAUDE.whole[0], CLAUDE.whole[-2:]
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [{"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "signed"}],
        ),
        ({"type": "redacted_thinking", "data": "sealed"}, []),
        ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "I look."}]),
        (
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
            [{"type": "input_json_delta", "partial_json": text} for text in ('{"where":', ' "up"}')],
        ),
    ]  # fmt: skip
    events = [start]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    got = await answer_to(CLAUDE, *events, *stop)
    assert (got.reasoning, got.text) == ("hm", "I look.")

    body = claude.request_body(ENDPOINT, next_turn(got))
    check_body("/v1/messages", body)
    assert json.loads(json.dumps(body["messages"]))[1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "signed"},
        {"type": "redacted_thinking", "data": "sealed"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"where": "up"}},
    ]


KEY = "sk-proj-AbCdEf0123456789ghijKLMN"


@pytest.mark.parametrize("form", [KEY, KEY.encode().hex(), base64.b64encode(KEY.encode()).decode()])
@pytest.mark.parametrize("place", ["thinking", "signature", "name of a field"])
async def test_signed_items_that_hold_a_key_are_not_sent_back_altered(place: str, form: str) -> None:
    """A provider refuses signed items that were altered, and takes a history without them."""
    start, stop = CLAUDE.whole[0], CLAUDE.whole[-2:]
    thinking, signature = (f"hm {form}" if place == one else "hm" for one in ("thinking", "signature"))
    arguments = json.dumps({form if place == "name of a field" else "where": "up"})
    deltas: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [{"type": "thinking_delta", "thinking": thinking}, {"type": "signature_delta", "signature": signature}],
        ),
        (
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
            [{"type": "input_json_delta", "partial_json": arguments}],
        ),
    ]
    events = [start]
    for index, (block, parts) in enumerate(deltas):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": part} for part in parts]
        events.append({"type": "content_block_stop", "index": index})
    async with raw_server(reply(sse(*events, *stop))) as server:
        backend = RedactedBackend(CLAUDE.backend(server.url), Redactor({"OPENAI_API_KEY": KEY}))
        got = await reply_of(backend, ask("look", LOOK))
    assert got.replay == ()
    body = claude.request_body(ENDPOINT, next_turn(got))
    check_body("/v1/messages", body)
    sent = json.dumps(body)
    assert form not in sent
    assert "signature" not in sent
    assert got.tool_calls[0].name == "look"


async def test_encrypted_reasoning_goes_back_before_its_call() -> None:
    items: list[dict[str, Any]] = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed", "status": None},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{}"},
    ]
    done = [
        {"type": "response.output_item.done", "sequence_number": n, "output_index": n, "item": item}
        for n, item in enumerate(items)
    ]
    got = await answer_to(RESPONSES, RESPONSES.whole[0], *done, RESPONSES.whole[-1])
    body = openai_responses.request_body(ENDPOINT, next_turn(got))
    check_body("/v1/responses", body)
    assert body["store"] is False
    assert json.loads(json.dumps(body["input"]))[1:3] == [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
    ]


def chat_events(*deltas: dict[str, Any]) -> list[dict[str, Any]]:
    spoken = [{**CHAT.whole[0], "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return [*spoken, CHAT.whole[-1]]


async def test_openrouters_reasoning_details_are_put_together_and_go_back() -> None:
    def detail(kind: str, index: int, **members: Any) -> dict[str, Any]:
        return {"reasoning_details": [{"type": f"reasoning.{kind}", "index": index, "format": "f", **members}]}

    deltas = (
        detail("text", 0, text="six ", signature=None),
        detail("text", 0, text="times", signature=None),
        detail("text", 0, signature="SIGNED"),
        detail("summary", 1, summary="se"),
        detail("summary", 1, summary="ven"),
        detail("encrypted", 2, data="E1"),
        detail("encrypted", 2, data="E2"),
        {"reasoning_details": [7, None]},
        {"content": "42"},
    )
    got = await answer_to(CHAT, *chat_events(*deltas))
    body = chatcompletion.request_body(ENDPOINT, next_turn(got))
    check_body("/v1/chat/completions", body)
    sent = json.loads(json.dumps(body["messages"]))[2]
    assert sent["content"] == "42"
    assert "tool_calls" not in sent
    assert [
        (part["type"].partition(".")[2], part.get("text", part.get("summary", part.get("data"))), part.get("signature"))
        for part in sent["reasoning_details"]
    ] == [
        ("text", "six times", "SIGNED"),
        ("summary", "seven", None),
        ("encrypted", "E1", None),
        ("encrypted", "E2", None),
    ]


async def test_reasoning_that_deepseek_wants_back_goes_back() -> None:
    got = await answer_to(CHAT, *chat_events({"reasoning_content": "six "}, {"reasoning_content": "times"}))
    body = chatcompletion.request_body(ENDPOINT, next_turn(got))
    check_body("/v1/chat/completions", body)
    assert json.loads(json.dumps(body["messages"]))[2]["reasoning_content"] == "six times"


async def test_geminis_signature_of_a_text_goes_back_with_it() -> None:
    signature = {"google": {"thought_signature": "SIGNED"}}
    got = await answer_to(CHAT, *chat_events({"content": "42"}, {"content": "", "extra_content": signature}))
    body = chatcompletion.request_body(ENDPOINT, next_turn(got))
    assert json.loads(json.dumps(body["messages"]))[2] == {
        "role": "assistant",
        "content": "42",
        "extra_content": signature,
    }


@pytest.mark.parametrize(("path", "make_body"), BODIES, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize(
    "arguments", ["", '{"where":', "[1]", '{"n": NaN}', '{"n": ' + "9" * 5000 + "}", "[" * 100_000, '"\ud800"']
)
def test_a_broken_call_goes_back_as_a_valid_one(path: str, make_body: Any, arguments: str) -> None:
    call = ToolCall("call_1", "look \x1b[31m around", arguments)
    history = (
        UserMessage("go \ud800"),
        AssistantMessage("", (call,)),
        ToolResultMessage("call_1", call.name, "not JSON", is_error=True),
        AssistantMessage(""),
        UserMessage("again"),
    )
    body = make_body(ENDPOINT, ModelRequest("system", history, (LOOK, VOTE)))
    check_body(path, body)
    json.dumps(body, allow_nan=False).encode()
    assert "look__" in json.dumps(body)


def test_a_model_that_thinks_is_not_forced_to_call_a_tool() -> None:
    request = ask("Vote!", VOTE, must_call_tool=True)
    forced = claude.request_body(ENDPOINT, request)
    thinking = claude.request_body(replace(ENDPOINT, reasoning_effort="high"), request)
    configured = claude.request_body(
        replace(ENDPOINT, extra_body={"thinking": {"type": "enabled", "budget_tokens": 2000}}), request
    )
    assert forced["tool_choice"] == {"type": "any"}
    assert thinking["tool_choice"] == configured["tool_choice"] == {"type": "auto"}


@pytest.mark.parametrize(
    ("effort", "fields"),
    [
        (None, {}),
        ("none", {"thinking": {"type": "disabled"}}),
        ("minimal", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        ("xhigh", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}),
    ],
)
def test_claudes_words_for_reasoning_effort(effort: str | None, fields: dict[str, Any]) -> None:
    body = claude.request_body(replace(ENDPOINT, reasoning_effort=effort), ask("?"))
    check_body("/v1/messages", body)
    assert {name: body[name] for name in ("thinking", "output_config") if name in body} == fields


def test_encrypted_reasoning_is_not_asked_of_models_that_do_not_reason() -> None:
    assert "include" in openai_responses.request_body(ENDPOINT, ask("?"))
    for model in ("gpt-4o-mini", "gpt-5-chat-latest"):
        assert "include" not in openai_responses.request_body(replace(ENDPOINT, model=model), ask("?"))


def test_openai_itself_is_told_a_limit_by_its_new_name() -> None:
    limited = replace(ENDPOINT, max_output_tokens=100)
    assert chatcompletion.request_body(limited, ask("?"))["max_completion_tokens"] == 100
    elsewhere = replace(limited, base_url="http://127.0.0.1/v1")
    assert chatcompletion.request_body(elsewhere, ask("?"))["max_tokens"] == 100
