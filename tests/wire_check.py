"""Whether a request body is one that the provider's API allows, by the SDK's own request types.

aimock takes almost anything; this does not.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal, NotRequired, cast

from pydantic import TypeAdapter
from typing_extensions import TypedDict  # pydantic wants this one on Python 3.11

from tests import gemini_body


def check_body(path: str, body: dict[str, Any]) -> None:
    """Fail unless `body` may be sent to `path`: known fields, right types, every tool call answered."""
    if ":streamGenerateContent" in path:
        gemini_body.check(body)
        return
    params, pairs = _rules(path.partition("?")[0])
    unknown = set(body) - params.__required_keys__ - params.__optional_keys__
    assert not unknown, f"{path} knows no fields {sorted(unknown)}"
    _exhaust(_adapter(params).validate_python(body))
    pairs(body)


def _rules(path: str) -> tuple[Any, Any]:
    if path.endswith("/chat/completions"):
        from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

        return CompletionCreateParamsStreaming, _check_chat_pairs
    if path.endswith("/responses"):
        from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

        return ResponseCreateParamsStreaming, _check_responses_pairs
    if path.endswith("/messages"):
        from anthropic.types.message_create_params import MessageCreateParamsStreaming

        return MessageCreateParamsStreaming, _check_claude_pairs
    if path.endswith("/api/chat"):
        return OllamaChat, _check_chat_pairs
    raise AssertionError(f"no rules for {path}")


@cache
def _adapter(params: Any) -> TypeAdapter[Any]:
    return TypeAdapter(params)


def _exhaust(value: Any) -> None:
    """pydantic validates an `Iterable` only when it is walked."""
    if isinstance(value, Mapping):
        for item in cast("Mapping[str, Any]", value).values():
            _exhaust(item)
    elif isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        for item in cast("Iterable[Any]", value):
            _exhaust(item)


def _check_chat_pairs(body: dict[str, Any]) -> None:
    open_calls: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_calls, f"result of no open call: {message['tool_call_id']}"
            open_calls.remove(message["tool_call_id"])
            continue
        assert not open_calls, f"calls without results: {open_calls}"
        open_calls = [call["id"] for call in message.get("tool_calls", ())]
        assert len(open_calls) == len(set(open_calls)), f"one id for two calls: {open_calls}"
    assert not open_calls, f"calls without results: {open_calls}"


class OllamaFunction(TypedDict):
    name: str
    arguments: dict[str, Any]


class OllamaCall(TypedDict):
    id: NotRequired[str]
    function: OllamaFunction


class OllamaMessage(TypedDict):
    role: Literal["system", "user", "assistant", "tool"]
    content: str
    thinking: NotRequired[str]
    tool_calls: NotRequired[list[OllamaCall]]
    tool_name: NotRequired[str]
    tool_call_id: NotRequired[str]


class OllamaOptions(TypedDict, total=False):
    num_ctx: int
    num_predict: int
    temperature: float
    top_p: float


class OllamaChat(TypedDict):
    """`ChatRequest` of Ollama's `api/types.go`, as far as we use it; it has no SDK here."""

    model: str
    messages: list[OllamaMessage]
    stream: bool
    options: OllamaOptions
    tools: NotRequired[list[dict[str, Any]]]
    keep_alive: NotRequired[str | int]
    format: NotRequired[dict[str, Any]]
    think: NotRequired[bool | Literal["low", "medium", "high", "max"]]
    truncate: NotRequired[bool]
    shift: NotRequired[bool]


def _check_responses_pairs(body: dict[str, Any]) -> None:
    items = body["input"]
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    results = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert calls == results, f"calls {calls} but results {results}"
    assert len(calls) == len(set(calls)), f"one id for two calls: {calls}"


def _check_claude_pairs(body: dict[str, Any]) -> None:
    turns: list[dict[str, Any]] = body["messages"]
    end: dict[str, Any] = {"content": []}
    roles = [turn["role"] for turn in turns]
    assert roles == [("user", "assistant")[place % 2] for place in range(len(turns))], (
        f"turns do not alternate: {roles}"
    )
    for turn, following in zip(turns, [*turns[1:], end], strict=True):
        calls = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
        results = [block["tool_use_id"] for block in following["content"] if block["type"] == "tool_result"]
        assert calls == results, f"calls {calls} but results {results}"
        assert len(calls) == len(set(calls)), f"one id for two calls: {calls}"
