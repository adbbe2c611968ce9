"""Google's own API for Gemini. A reply's parts are sent back as they came, with the signatures of its thoughts.

No SDK: the requests are made with the HTTP client that every wire uses (docs/decisions.md).
"""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import NamedTuple, cast
from urllib.parse import quote

import httpx2

from massgen_mcp.backends.base import (
    AssistantMessage,
    JsonObject,
    JsonValue,
    Message,
    ModelRequest,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from massgen_mcp.backends.event_stream import ServerEvent
from massgen_mcp.backends.gemini_reply import GeminiReply
from massgen_mcp.backends.http import Endpoint, LazyClient, events_in
from massgen_mcp.backends.plain_client import PlainClient
from massgen_mcp.backends.streamed import HttpBackend
from massgen_mcp.backends.wiretext import arguments_object, clean_object, tool_name

GEMINI = "https://generativelanguage.googleapis.com/v1beta"

_NATIVE_TOOLS: Mapping[str, str] = {"web_search": "googleSearch", "code_execution": "codeExecution"}

_UNSIGNED = "skip_thought_signature_validator"
"""What the API takes in place of a signature, for a call that it did not make, or whose signature is gone."""

_DO_NOT_THINK = ("gemini-1", "gemini-2.0", "gemma")
"""These models answer 400 when they are asked for thoughts."""

_BUDGETS: Mapping[str, int] = {"none": 0, "minimal": 1_024, "low": 1_024, "medium": 8_192}
"""Tokens of thought, as the API's compatible endpoint reads the words; more than `medium` is `_LARGE_BUDGET`."""
_LARGE_BUDGET = 24_576
_LEVELS: Mapping[str, str] = {"none": "minimal", "xhigh": "high", "max": "high"}
"""Efforts that Gemini 3 and later call otherwise. It always thinks."""


class GeminiBackend(HttpBackend[PlainClient, GeminiReply]):
    def __init__(self, endpoint: Endpoint) -> None:
        client = LazyClient(lambda: PlainClient(endpoint.api_key, "x-goog-api-key"))
        super().__init__(endpoint, _with_version(endpoint.base_url or GEMINI), client, GeminiReply)

    async def _events(
        self, client: PlainClient, request: ModelRequest, _: GeminiReply, /
    ) -> AsyncGenerator[ServerEvent]:
        body = request_body(self._endpoint, request)
        async with client.posted(self._url(), body) as chunks, aclosing(events_in(chunks)) as events:
            async for event in events:
                yield event

    def _url(self) -> str:
        model = self._endpoint.model
        name = model if "/" in model else f"models/{model}"
        return f"{self._base_url}/{quote(name)}:streamGenerateContent?alt=sse"


def _with_version(base_url: str) -> str:
    """Users write the root with or without the version of the API."""
    url = httpx2.URL(base_url)
    return f"{base_url.rstrip('/')}/v1beta" if url.path in ("", "/") else base_url.rstrip("/")


def request_body(endpoint: Endpoint, request: ModelRequest) -> JsonObject:
    """The whole body of the HTTP request."""
    settings: dict[str, JsonValue] = {
        "temperature": endpoint.temperature,
        "topP": endpoint.top_p,
        "maxOutputTokens": request.max_output_tokens or endpoint.max_output_tokens,
        "thinkingConfig": _thinking(endpoint.model, endpoint.reasoning_effort),
    }
    body: JsonObject = {
        "systemInstruction": {"parts": [{"text": request.system}]},
        "contents": [*_contents(request.messages)],
        "generationConfig": {name: value for name, value in settings.items() if value not in (None, {})},
    }
    native: list[JsonValue] = [{_NATIVE_TOOLS[tool]: {}} for tool in endpoint.native_tools]
    if request.tools:
        declared: list[JsonValue] = [
            {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
            for tool in request.tools
        ]
        body["toolConfig"] = _tool_config(combined=bool(native), must_call=request.must_call_tool)
        body["tools"] = [*native, {"functionDeclarations": declared}]
    elif native:
        body["tools"] = native
    return clean_object(_merged(body, endpoint.extra_body))


def _tool_config(*, combined: bool, must_call: bool) -> JsonObject:
    """Together with tools of its own the API knows no AUTO, and wants to show what they did."""
    mode = "ANY" if must_call else "VALIDATED" if combined else "AUTO"
    config: JsonObject = {"functionCallingConfig": {"mode": mode}}
    return {**config, "includeServerSideToolInvocations": True} if combined else config


def _thinking(model: str, effort: str | None) -> JsonObject:
    name = model.rpartition("/")[2]
    if name.startswith(_DO_NOT_THINK):
        return {}
    thinking: JsonObject = {"includeThoughts": True}
    if effort is None:
        return thinking
    if name.startswith("gemini-2.5"):
        budget = _BUDGETS.get(effort, _LARGE_BUDGET)
        return {**thinking, "thinkingBudget": budget} if budget else {"thinkingBudget": 0}
    return {**thinking, "thinkingLevel": _LEVELS.get(effort, effort)}


def _merged(body: JsonObject, extra: JsonObject) -> JsonObject:
    """Fields of the user's own go before ours, also those one level below, where the API has most of them."""
    merged = {**body}
    for name, value in extra.items():
        ours = merged.get(name)
        merged[name] = {**ours, **value} if isinstance(ours, dict) and isinstance(value, dict) else value
    return merged


# -- the conversation -------------------------------------------------------------------------------------------------


class _Sent(NamedTuple):
    """How a call stands in the conversation, and so has to be named with its result; not every call has an id."""

    name: str
    call_id: str | None


def _contents(messages: Sequence[Message]) -> Iterator[JsonObject]:
    """The results of all calls of a reply are one turn."""
    sent: dict[str, _Sent] = {}
    results: list[JsonValue] = []
    for message in messages:
        if results and not isinstance(message, ToolResultMessage):
            yield {"role": "user", "parts": results}
            results = []
        match message:
            case UserMessage():
                yield {"role": "user", "parts": [{"text": message.text}]}
            case ToolResultMessage():
                results = [*results, _result(message, sent.get(message.call_id))]
            case AssistantMessage():
                parts: list[JsonValue] = [*message.replay] or [*_parts(message)]
                sent |= _calls_in(message.tool_calls, parts)
                if parts:
                    yield {"role": "model", "parts": parts}
    if results:
        yield {"role": "user", "parts": results}


def _parts(message: AssistantMessage) -> Iterator[JsonValue]:
    if message.text.strip():
        yield {"text": message.text}
    for place, call in enumerate(message.tool_calls):
        part: JsonObject = {"functionCall": function_call(call)}
        yield part if place else {**part, "thoughtSignature": _UNSIGNED}


def function_call(call: ToolCall) -> JsonObject:
    return {"id": call.id, "name": tool_name(call.name), "args": arguments_object(call.arguments)}


def _calls_in(calls: Sequence[ToolCall], parts: Sequence[JsonValue]) -> dict[str, _Sent]:
    called = [part["functionCall"] for part in parts if isinstance(part, dict) and "functionCall" in part]
    calls_sent = [call for call in called if isinstance(call, dict)]
    return {
        call.id: _Sent(str(one.get("name", call.name)), cast("str | None", one.get("id")))
        for call, one in zip(calls, calls_sent, strict=False)
    }


def _result(message: ToolResultMessage, sent: _Sent | None) -> JsonValue:
    sent = sent or _Sent(tool_name(message.name), message.call_id)
    response: JsonObject = {"error" if message.is_error else "output": message.text}
    fields: JsonObject = {"name": sent.name, "response": response}
    return {"functionResponse": {"id": sent.call_id, **fields} if sent.call_id else fields}
