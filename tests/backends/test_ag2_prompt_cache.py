"""An AG2 agent asks its provider to keep prompts: real AG2 on doubles of the Messages API and of Chat Completions."""

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from massgen_mcp.backends.base import (
    AssistantMessage,
    Backend,
    ModelRequest,
    StopPart,
    ToolCall,
    ToolResultMessage,
    UsagePart,
    UserMessage,
)
from massgen_mcp.backends.frameworks.ag2_agent import Ag2Agent
from massgen_mcp.backends.http import Endpoint
from massgen_mcp.backends.own_loop import AgentBackend
from massgen_mcp.backends.registry import make_backend
from massgen_mcp.config.loader import config_from_data, missing_keys
from massgen_mcp.config.models.ag2 import Ag2BackendConfig
from massgen_mcp.errors import BackendError
from tests.backends.ag2 import KEY, said, section
from tests.backends.wires import CLAUDE, LOOK, VOTE, ask, calls_in, parts_of, stop_of, text_in
from tests.raw_double import raw_server, reply, sse

MARK = {"type": "ephemeral"}
CACHED = {"input_tokens": 5, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30, "output_tokens": 1}
PARIS = reply(sse(*CLAUDE.whole))


def backend_config(**settings: Any) -> Ag2BackendConfig:
    data = {"agents": [{"id": "coder", "backend": section(**settings)}]}
    backend = config_from_data(data, "team.yaml").agents[0].backend
    assert isinstance(backend, Ag2BackendConfig)
    return backend


def at_anthropic(url: str, **settings: Any) -> Backend:
    """At Anthropic's own address, which the environment has moved to the double."""
    config = backend_config(api_type="anthropic", model="claude-opus-5-5", **settings)
    return make_backend(config, {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": url})


def calling(*calls: ToolCall, usage: dict[str, int] = CACHED) -> bytes:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**CLAUDE.whole[0]["message"], "usage": usage}}
    ]
    for index, call in enumerate(calls):
        block: dict[str, Any] = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": call.arguments}
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    end = {"stop_reason": "tool_use", "stop_sequence": None}
    return reply(
        sse(*events, {"type": "message_delta", "delta": end, "usage": {"output_tokens": 20}}, {"type": "message_stop"})
    )


async def test_a_model_of_anthropic_is_asked_by_its_own_api_with_marks_at_the_system_message_and_at_the_end() -> None:
    call = ToolCall("c1", "look", '{"where": "up"}')
    history = (
        UserMessage("Look around."),
        AssistantMessage(" "),
        AssistantMessage("", (call,)),
        ToolResultMessage("c1", "look", "a roof"),
    )
    asked = ModelRequest("You are terse.", history, (LOOK, VOTE), must_call_tool=True, max_output_tokens=70)
    async with raw_server(calling(ToolCall("c2", "vote", '{"agent_id": "a"}'))) as double:
        parts = await parts_of(at_anthropic(double.url, temperature=0.5), asked)
        (seen,) = double.requests
    assert seen.head.startswith("POST /v1/messages ")
    assert seen.headers["x-api-key"] == KEY
    assert seen.body["system"] == [{"type": "text", "text": "You are a coder.\nYou are terse.", "cache_control": MARK}]
    first, turn, last = seen.body["messages"]
    assert (first["content"], turn["role"]) == ("Look around.", "assistant"), "blank text of the model is left out"
    assert [block["type"] for block in turn["content"]] == ["tool_use"]
    assert [block.get("cache_control") for block in last["content"]] == [MARK]
    assert json.dumps(seen.body).count("cache_control") == 2
    assert (seen.body["tool_choice"], seen.body["max_tokens"]) == ({"type": "any"}, 70)
    assert (seen.body["model"], seen.body["temperature"]) == ("claude-opus-5-5", 0.5)
    assert [(one.name, one.arguments) for one in calls_in(parts)] == [("vote", '{"agent_id": "a"}')]
    assert [part for part in parts if isinstance(part, UsagePart)] == [
        UsagePart(95, cached_input_tokens=60, output_tokens=20, model="m", cache_write_tokens=30)
    ]
    assert stop_of(parts).reason == "tool_calls"


async def test_text_of_anthropic_comes_as_it_is_written() -> None:
    async with raw_server(PARIS) as double:
        parts = await parts_of(
            at_anthropic(double.url, reasoning_effort="high"), ask("Capital?", VOTE, must_call_tool=True)
        )
        (seen,) = double.requests
    assert text_in(parts) == "Paris"
    assert UsagePart(3, output_tokens=2, model="m") in parts
    assert stop_of(parts) == StopPart("end", provider_word="end_turn")
    assert seen.body["thinking"] == {"type": "adaptive"}
    assert seen.body["tool_choice"] == {"type": "auto"}, "the API refuses to force a tool on a model that thinks"


@pytest.mark.parametrize(
    ("answer", "reason", "retryable"),
    [
        (reply(b'{"type": "error", "error": {"type": "authentication_error", "message": "no"}}',
               status="401 Unauthorized", media_type="application/json"), "auth", False),
        (reply(b'{"type": "error", "error": {"type": "rate_limit_error", "message": "no"}}',
               status="429 Too Many Requests", media_type="application/json"), "rate_limited", True),
        (reply(sse(*CLAUDE.whole[:3])), "provider_error", True),
        (reply(sse({"type": "error", "error": {"type": "overloaded_error", "message": KEY}})), "provider_error", True),
    ],
    ids=("401", "429", "cut off", "told inside"),
)  # fmt: skip
async def test_a_failure_of_anthropic_is_typed_told_once_and_without_the_key(
    answer: bytes, reason: str, retryable: bool
) -> None:
    async with raw_server(answer) as double:
        with pytest.raises(BackendError) as caught:
            await parts_of(at_anthropic(double.url), ask("?"))
        assert len(double.requests) == 1, "retries are ours, not AG2's"
    assert (caught.value.reason, caught.value.retryable) == (reason, retryable)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "backend_type", "key"),
    [
        ({"api_type": "anthropic"}, "claude", "ANTHROPIC_API_KEY"),
        ({"api_type": "anthropic", "base_url": "https://api.anthropic.com/v1"}, "claude", "ANTHROPIC_API_KEY"),
        ({"api_type": "anthropic", "base_url": "https://openrouter.ai/api/v1"}, "chatcompletion", "OPENROUTER_API_KEY"),
        ({"api_type": "google"}, "chatcompletion", "GOOGLE_API_KEY"),
        ({"api_type": "openai"}, "chatcompletion", "OPENAI_API_KEY"),
    ],
)
def test_only_anthropics_own_address_has_its_api(settings: dict[str, Any], backend_type: str, key: str) -> None:
    data = {"agents": [{"id": "coder", "backend": section(**settings)}]}
    assert [asked.type for asked in backend_config(**settings).asked] == [backend_type]
    assert missing_keys(config_from_data(data, "team.yaml"), {}) == [key]


@pytest.mark.parametrize(
    ("host", "model", "field"),
    [
        ("openrouter.ai", "anthropic/claude-opus-5.5", "cache_control"),
        ("openrouter.ai", "google/gemini-3.8-flash", None),
        ("openrouter.ai", "openai/gpt-5", None),
        ("api.openai.com", "gpt-5", "prompt_cache_key"),
        ("api.openai.com", "gpt-6.1-sol", "prompt_cache_key"),
        ("localhost", "gpt-5", None),
    ],
)
async def test_chat_completions_are_asked_for_the_cache_where_they_know_how(
    monkeypatch: pytest.MonkeyPatch, host: str, model: str, field: str | None
) -> None:
    found: Callable[..., Any] = socket.getaddrinfo

    def find_here(_host: object, *others: Any, **more: Any) -> Any:
        return found("127.0.0.1", *others, **more)

    monkeypatch.setattr(socket, "getaddrinfo", find_here)
    async with raw_server(said({"content": "Paris"})) as double:
        port = double.url.rpartition(":")[2]
        endpoint = Endpoint(model=model, api_key=KEY, base_url=f"http://{host}:{port}/v1")
        asked = ModelRequest("s", (UserMessage("?"),), cache_scope="run-1")
        await parts_of(AgentBackend(Ag2Agent(endpoint, "coder", None)), asked)
        (seen,) = double.requests
    assert [name for name in seen.body if "cache" in name] == [name for name in [field] if name]
