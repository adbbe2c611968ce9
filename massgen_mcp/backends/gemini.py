"""Google's own API for Gemini. A reply's parts are sent back as they came, with the signatures of its thoughts.

No SDK: the requests are made with the HTTP client that every wire uses (docs/decisions.md).
"""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import chain
from typing import NamedTuple, cast
from urllib.parse import quote

import httpx2

from massgen_mcp.backends.base import (
    AssistantMessage,
    Citation,
    CitationsPart,
    DraftPart,
    JsonObject,
    JsonValue,
    Message,
    ModelRequest,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResultMessage,
    UsagePart,
    UserMessage,
)
from massgen_mcp.backends.ends import GEMINI
from massgen_mcp.backends.event_stream import ServerEvent
from massgen_mcp.backends.failures import failure, of_event, stop_part
from massgen_mcp.backends.http import Endpoint, LazyClient, PlainClient, events_in
from massgen_mcp.backends.streamed import HttpBackend, WireReply
from massgen_mcp.backends.wire_values import (
    Fields,
    arguments_object,
    as_list,
    citation,
    clean,
    clean_object,
    complete_usage,
    count,
    fields_of,
    json_object,
    member,
    needed_text,
    objects_in,
    parsed,
    text_in,
    tool_name,
    written_tokens,
)

GEMINI_API = "https://generativelanguage.googleapis.com/v1beta"

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


class GeminiBackend(HttpBackend[PlainClient, "GeminiReply"]):
    def __init__(self, endpoint: Endpoint) -> None:
        client = LazyClient(lambda: PlainClient(endpoint, "x-goog-api-key"))
        at = _with_version(endpoint.base_url or GEMINI_API)
        super().__init__(replace(endpoint, base_url=at), client, GeminiReply)

    async def _events(
        self, client: PlainClient, request: ModelRequest, _: "GeminiReply", /
    ) -> AsyncGenerator[ServerEvent]:
        body = request_body(self._endpoint, request)
        async with client.posted(self._url(), body) as chunks, aclosing(events_in(chunks)) as events:
            async for event in events:
                yield event

    def _url(self) -> str:
        model = self._endpoint.model
        name = model if "/" in model else f"models/{model}"
        return f"{self._endpoint.base_url}/{quote(name)}:streamGenerateContent?alt=sse"


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
        "contents": [*_contents(request.messages)],
        "generationConfig": {name: value for name, value in settings.items() if value not in (None, {})},
    }
    if request.system:
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    native: list[JsonValue] = [{_NATIVE_TOOLS[tool]: {}} for tool in endpoint.native_tools]
    if request.all_tools:
        declared: list[JsonValue] = [
            {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
            for tool in request.all_tools
        ]
        none = not request.tools and not native
        body["toolConfig"] = _tool_config(combined=bool(native), must_call=request.must_call_tool, none=none)
        body["tools"] = [*native, {"functionDeclarations": declared}]
    elif native:
        body["tools"] = native
    return clean_object(_merged(body, endpoint.extra_body))


def _tool_config(*, combined: bool, must_call: bool, none: bool) -> JsonObject:
    """Together with tools of its own the API knows no AUTO, and wants to show what they did. `none`: the tools are
    listed for the cache alone.
    """
    mode = "VALIDATED" if combined else "AUTO"
    if must_call or none:
        mode = "ANY" if must_call else "NONE"
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
                results = [*results, _function_response(message, sent.get(message.call_id))]
            case AssistantMessage():
                parts: list[JsonValue] = [*message.replay] or [*_message_parts(message)]
                sent |= _calls_in(message.tool_calls, parts)
                if parts:
                    yield {"role": "model", "parts": parts}
    if results:
        yield {"role": "user", "parts": results}


def _message_parts(message: AssistantMessage) -> Iterator[JsonValue]:
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


def _function_response(message: ToolResultMessage, sent: _Sent | None) -> JsonValue:
    sent = sent or _Sent(tool_name(message.name), message.call_id)
    response: JsonObject = {"error" if message.is_error else "output": message.text}
    fields: JsonObject = {"name": sent.name, "response": response}
    return {"functionResponse": {"id": sent.call_id, **fields} if sent.call_id else fields}


# -- one reply of Gemini's own API, put together out of its events ----------------------------------------------------
# Every event holds the parts that are new, and everything that was counted so far.


class GeminiReply(WireReply):
    def __init__(self, endpoint: Endpoint, request: ModelRequest) -> None:
        super().__init__(endpoint, request)
        self._parts: list[JsonObject] = []
        """To be sent back."""
        self._signed = False
        """There is something in them that the plain messages do not tell as well."""
        self._finish: object = None
        self._finish_message: object = None
        self._usage: object = None
        self._model: object = ""
        self._sources: object = None
        self._queries: object = None

    def read(self, sent: ServerEvent) -> Iterator[Part]:
        event = fields_of(parsed(sent.data), "an event")
        if event.get("error"):
            raise of_event(event, "an error event", self._endpoint)
        self._model = event.get("modelVersion") or self._model
        self._usage = event.get("usageMetadata") or self._usage
        for candidate in objects_in(event, "candidates"):
            yield from self._candidate(candidate)
        if blocked := member(event, "promptFeedback", "blockReason"):
            yield from self._counted()
            message = f"{self._endpoint.base_url} blocked the request: {blocked}"
            raise failure("content_filter", message, self._endpoint)

    def finish(self) -> Iterator[Part]:
        why = f": {self._finish_message}" if isinstance(self._finish_message, str) else ""
        stop = stop_part(GEMINI, "finishReason", self._finish, self._called, self._endpoint, comment=why)
        if citations := tuple(self._citations()):
            yield CitationsPart(citations)
        yield from self._counted()
        yield replace(stop, replay=tuple(self._parts) if self._signed else ())

    def _candidate(self, candidate: Fields) -> Iterator[Part]:
        self._finish = candidate.get("finishReason") or self._finish
        self._finish_message = candidate.get("finishMessage") or self._finish_message
        grounding = candidate.get("groundingMetadata")
        if member(grounding, "groundingChunks"):
            self._sources = grounding
        self._queries = member(grounding, "webSearchQueries") or self._queries
        content = candidate.get("content")
        if content is not None:
            for part in objects_in(fields_of(content, "content"), "parts"):
                yield from self._part(part)

    def _part(self, part: Fields) -> Iterator[Part]:
        if (call := part.get("functionCall")) is not None:
            yield from self._function_call(part, fields_of(call, "functionCall"))
        elif "text" in part:
            yield from self._text(part)
        else:
            # Code that ran there, what it came to, searches, and whatever there will be.
            self._signed = True
            self._parts.append(clean_object(json_object(part)))

    def _text(self, part: Fields) -> Iterator[Part]:
        text, thought = clean(text_in(part, "text")), part.get("thought") is True
        if text:
            yield ReasoningPart(text) if thought else TextPart(text)
        if part.get("thoughtSignature"):
            # A signature belongs to its part, and to no other text.
            self._signed = True
            self._parts.append(clean_object(json_object(part)))
            return
        last: JsonObject = self._parts[-1] if self._parts else {}
        goes_on = last.keys() == ({"text", "thought"} if thought else {"text"})
        if goes_on:
            last["text"] = f"{last['text']}{text}"
        elif text:
            self._parts.append({"text": text, "thought": True} if thought else {"text": text})

    def _function_call(self, part: Fields, call: Fields) -> Iterator[Part]:
        self._signed = True
        given, name, args = text_in(call, "id"), clean(needed_text(call, "name")), call.get("args")
        arguments = clean(json.dumps({} if args is None else args, ensure_ascii=False))
        self._called.append(arguments)
        made = ToolCall(self._ids.take(given), name, arguments)
        sent: JsonObject = json_object(call)
        if not isinstance(args, dict):
            sent = {**sent, "args": arguments_object(arguments)}  # anything else would not be taken back
        if given:
            sent = {**sent, "id": made.id}
        self._parts.append(clean_object({**json_object(part), "functionCall": sent}))
        if (draft := self._drafts.begin(name)) and (shown := draft.add(arguments)):
            yield DraftPart(shown)
        yield ToolCallPart(made)

    def _counted(self) -> Iterator[UsagePart]:
        usage = self._usage
        if usage is None:
            return
        asked, looked_up = count(member(usage, "promptTokenCount")), count(member(usage, "toolUsePromptTokenCount"))
        answered, thought = count(member(usage, "candidatesTokenCount")), count(member(usage, "thoughtsTokenCount"))
        # What its own tools came to is input as well, thoughts are output; the API counts them apart.
        read = None if asked is None else asked + (looked_up or 0)
        written = None if answered is None and thought is None else (answered or 0) + (thought or 0)
        counted = UsagePart(
            input_tokens=read,
            output_tokens=written_tokens(read, written, count(member(usage, "totalTokenCount")), thought),
            cached_input_tokens=count(member(usage, "cachedContentTokenCount")) or 0,
            reasoning_tokens=thought or 0,
            web_searches=self._searches(),
        )
        yield complete_usage(self._model, counted)

    def _searches(self) -> int:
        """What is billed: every query, by Gemini 2 every request that searched."""
        made = len(as_list(self._queries))
        return min(made, 1) if self._endpoint.model.rpartition("/")[2].startswith("gemini-2") else made

    def _citations(self) -> Iterator[Citation]:
        """The pages that the reply rests on; all that were found, if the API does not say on which."""
        found = as_list(member(self._sources, "groundingChunks"))
        supports = as_list(member(self._sources, "groundingSupports"))
        named = chain.from_iterable(as_list(member(support, "groundingChunkIndices")) for support in supports)
        places = [place for place in dict.fromkeys(map(count, named)) if place is not None and place < len(found)]
        for place in places or range(len(found)):
            if cited := citation(member(found[place], "web", "uri"), member(found[place], "web", "title")):
                yield cited
