"""Tools that providers run themselves: asked for in each provider's own words, and not mistaken for ours."""

from dataclasses import replace
from typing import Any

import pytest

from massgen_mcp.backends.base import AssistantMessage, JsonObject, TextPart, ToolResultMessage, UsagePart
from massgen_mcp.backends.claude import MAX_PAUSES
from massgen_mcp.backends.registry import make_backend
from massgen_mcp.config.models.http_backends import ProviderBackendConfig
from massgen_mcp.errors import BackendError
from tests.backends.wires import CLAUDE, RESPONSES, VOTE, ask, parts_of, reply_of, stop_of, text_in
from tests.raw_double import raw_server, reply, sse
from tests.wire_check import check_body
from tests.wire_double import Aimock

PARIS = {"match": {"userMessage": "capital"}, "response": {"content": "Paris"}}
SEARCH_AND_RUN = {
    "openai": [{"type": "web_search"}, {"type": "code_interpreter", "container": {"type": "auto"}}],
    "claude": [
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "code_execution_20250825", "name": "code_execution"},
    ],
    "grok": [{"type": "web_search"}, {"type": "x_search"}, {"type": "code_interpreter"}],
}


def backend_config(kind: str, base_url: str, *flags: str) -> ProviderBackendConfig:
    data = {"type": kind, "model": "some-model", "base_url": base_url, **dict.fromkeys(flags, True)}
    return ProviderBackendConfig.model_validate(data)


@pytest.mark.parametrize(
    ("kind", "suffix", "flags"),
    [
        ("openai", "/v1", ("enable_web_search", "enable_code_interpreter")),
        ("claude", "", ("enable_web_search", "enable_code_execution")),
        ("grok", "/v1", ("enable_web_search", "enable_x_search", "enable_code_interpreter")),
    ],
)
@pytest.mark.parametrize("with_ours", [True, False])
async def test_native_tools_stand_beside_ours(
    kind: str, suffix: str, flags: tuple[str, ...], with_ours: bool, aimock: Aimock
) -> None:
    aimock.load(PARIS)
    ours = (VOTE,) if with_ours else ()
    asked = make_backend(backend_config(kind, aimock.url + suffix, *flags), {})
    await parts_of(asked, ask("capital?", *ours, must_call_tool=with_ours))
    (request,) = aimock.requests
    assert request.body["tools"][len(ours) :] == SEARCH_AND_RUN[kind]
    known = request.body["tools"][: len(ours)] if kind == "grok" else request.body["tools"]
    check_body(request.path, {**request.body, "tools": known})  # OpenAI's types do not know xAI's tools
    assert [tool["name"] for tool in request.body["tools"][: len(ours)]] == [tool.name for tool in ours]
    assert ("tool_choice" in request.body) == with_ours


@pytest.mark.parametrize(("kind", "suffix"), [("openai", "/v1"), ("claude", "")])
async def test_one_flag_asks_for_one_tool(kind: str, suffix: str, aimock: Aimock) -> None:
    aimock.load(PARIS)
    asked = make_backend(backend_config(kind, aimock.url + suffix, "enable_web_search"), {})
    await parts_of(asked, ask("capital?"))
    (request,) = aimock.requests
    assert request.body["tools"] == SEARCH_AND_RUN[kind][:1]


async def test_openrouter_searches_by_a_plugin(aimock: Aimock) -> None:
    aimock.load(PARIS)
    asked = make_backend(backend_config("openrouter", f"{aimock.url}/api/v1", "enable_web_search"), {})
    await parts_of(asked, ask("capital?", VOTE))
    (request,) = aimock.requests
    assert request.path == "/api/v1/chat/completions"
    assert request.body.pop("plugins") == [{"id": "web"}]
    assert len(request.body["tools"]) == 1
    check_body(request.path, request.body)


@pytest.mark.parametrize("kind", ["openai", "claude", "openrouter"])
async def test_without_a_flag_nothing_is_asked_for(kind: str, aimock: Aimock) -> None:
    aimock.load(PARIS)
    suffix = "" if kind == "claude" else "/v1"
    await parts_of(make_backend(backend_config(kind, aimock.url + suffix), {}), ask("capital?"))
    (request,) = aimock.requests
    assert not {"tools", "plugins"} & set(request.body)


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def claude_reply(stop_reason: str, *blocks: list[dict[str, Any]]) -> bytes:
    usage = {"output_tokens": 10}
    ending = {"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": None}, "usage": usage}
    events = [event for one in blocks for event in one]
    return reply(sse(CLAUDE.whole[0], *events, ending, {"type": "message_stop"}))


QUERY: JsonObject = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "France"}}
FOUND: JsonObject = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "https://x.org", "title": "X", "encrypted_content": "E"}],
}
SEARCHED = block(0, {**QUERY, "input": {}}, {"type": "input_json_delta", "partial_json": '{"query": "France"}'})
RESULTS = block(1, FOUND)
VOTED = block(2, {"type": "tool_use", "id": "toolu_2", "name": "vote", "input": {"agent_id": "agent1"}})
SAID = block(2, {"type": "text", "text": "Paris"})


async def test_claudes_own_searches_are_no_calls_of_ours_and_go_back_as_they_came(aimock: Aimock) -> None:
    aimock.load(PARIS)
    request = ask("capital?", VOTE)
    async with raw_server(claude_reply("tool_use", SEARCHED, RESULTS, VOTED)) as server:
        first = await reply_of(make_backend(backend_config("claude", server.url, "enable_web_search"), {}), request)
    assert [call.name for call in first.tool_calls] == ["vote"]
    said = AssistantMessage(first.text, first.tool_calls, first.replay)
    second = replace(request, messages=(*request.messages, said, ToolResultMessage("toolu_2", "vote", "no")))
    aimock.load({"match": {"hasToolResult": True}, "response": {"content": "Paris"}})
    await parts_of(make_backend(backend_config("claude", aimock.url, "enable_web_search"), {}), second)
    (sent,) = aimock.requests
    check_body(sent.path, sent.body)
    assert sent.body["messages"][1]["content"][:2] == [QUERY, FOUND]


async def test_a_reply_that_claude_pauses_is_continued_and_counted_whole() -> None:
    paused, rest = claude_reply("pause_turn", SEARCHED), claude_reply("end_turn", RESULTS, SAID)
    async with raw_server(paused, rest) as server:
        asked = make_backend(backend_config("claude", server.url, "enable_web_search"), {})
        parts = await parts_of(asked, ask("capital?"))
        assert len(server.heads) == 2
    assert text_in(parts) == "Paris"
    assert list(stop_of(parts).replay) == [QUERY, FOUND, {"type": "text", "text": "Paris"}]
    (usage,) = [part for part in parts if isinstance(part, UsagePart)]
    assert (usage.input_tokens, usage.output_tokens) == (6, 20)


async def test_a_reply_is_not_continued_for_ever() -> None:
    async with raw_server(claude_reply("pause_turn", SEARCHED)) as server:
        asked = make_backend(backend_config("claude", server.url, "enable_web_search"), {})
        with pytest.raises(BackendError, match="paused the reply more than 10 times") as caught:
            await parts_of(asked, ask("capital?"))
        assert not caught.value.retryable, "it would cost as much again"
        assert len(server.heads) == 1 + MAX_PAUSES


async def test_openais_own_searches_go_back_with_the_reasoning_they_followed(aimock: Aimock) -> None:
    thought: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"}
    searched: dict[str, Any] = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "France"},
    }
    items = [
        {"type": "response.output_item.done", "sequence_number": 1, "output_index": place, "item": item}
        for place, item in enumerate((thought, searched))
    ]
    request = ask("capital?")
    async with raw_server(reply(sse(RESPONSES.whole[0], *items, *RESPONSES.whole[1:]))) as server:
        asked = make_backend(backend_config("openai", f"{server.url}/v1", "enable_web_search"), {})
        parts = await parts_of(asked, request)
    assert [part.text for part in parts if isinstance(part, TextPart)] == ["Pa", "ris"]
    aimock.load(PARIS)
    said = AssistantMessage("Paris", replay=stop_of(parts).replay)
    second = replace(request, messages=(said, *request.messages))
    await parts_of(make_backend(backend_config("openai", f"{aimock.url}/v1", "enable_web_search"), {}), second)
    (sent,) = aimock.requests
    check_body(sent.path, sent.body)
    assert sent.body["input"][:2] == [thought, searched]


async def test_xais_own_searches_are_no_calls_of_ours_and_what_they_were_is_not_sent_back() -> None:
    thought: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"}
    on_x: dict[str, Any] = {
        "type": "custom_tool_call", "id": "ctc_1", "call_id": "xs_1", "name": "x_keyword_search",
        "input": '{"query": "from:xai"}', "status": "completed",
    }  # fmt: skip
    searched = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
    voted = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "vote", "arguments": "{}"}
    items = [
        {"type": "response.output_item.done", "sequence_number": 1, "output_index": place, "item": item}
        for place, item in enumerate((thought, on_x, searched, voted))
    ]
    flags = ("enable_web_search", "enable_x_search")
    async with raw_server(reply(sse(RESPONSES.whole[0], *items, *RESPONSES.whole[1:]))) as server:
        asked = make_backend(backend_config("grok", f"{server.url}/v1", *flags), {})
        first = await reply_of(asked, ask("capital?", VOTE))
    assert [call.name for call in first.tool_calls] == ["vote"]
    assert [item["type"] for item in first.replay] == ["reasoning", "function_call"]


async def test_tools_of_geminis_own_are_not_asked_for_at_the_compatible_endpoint_of_an_operator() -> None:
    config = ProviderBackendConfig(type="gemini", model="m", enable_web_search=True)
    with pytest.raises(BackendError, match="enable_web_search: the OpenAI-compatible endpoint at MASSGEN_GEMINI"):
        make_backend(config, {"MASSGEN_GEMINI_BASE_URL": "http://127.0.0.1:1/v1beta/openai"})
