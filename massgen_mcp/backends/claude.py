"""Anthropic's Messages API. Thinking is sent back as it came, with its signature."""

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from massgen_mcp.backends.base import (
    WORKFLOW_TOOLS,
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
    StopPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from massgen_mcp.backends.ends import MESSAGES, stop_of
from massgen_mcp.backends.event_stream import ServerEvent
from massgen_mcp.backends.failures import broken_off, cut_off, failure, of_event
from massgen_mcp.backends.http import (
    TIMEOUT,
    Endpoint,
    KeyHeader,
    LazyClient,
    events_in,
    http_client,
    posted,
)
from massgen_mcp.backends.prompt_cache import LONG_MARK, LOOKBACK, MARK, MAX_MARKS, add_mark, find_marked_messages
from massgen_mcp.backends.streamed import Draft, HttpBackend, WireReply
from massgen_mcp.backends.wire_values import (
    Fields,
    MessagesUsage,
    arguments_object,
    citation,
    clean,
    clean_object,
    fields_of,
    json_object,
    member,
    needed_int,
    needed_text,
    parse_leniently,
    parsed,
    text_in,
    tool_name,
)
from massgen_mcp.config.providers.catalog import MESSAGES_OUTPUT

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic


ANTHROPIC = "https://api.anthropic.com"

_SDK = "anthropic"
"""What is imported before the first call."""

_NATIVE_TOOLS: dict[str, str] = {"web_search": "web_search_20250305", "code_execution": "code_execution_20250825"}
"""Versions that every current model has; later ones want further tools or newer models."""


class ClaudeBackend(HttpBackend["AsyncAnthropic", "MessagesReply"]):
    def __init__(self, endpoint: Endpoint) -> None:
        endpoint = remove_version(endpoint)
        super().__init__(endpoint, LazyClient(lambda: _connect(endpoint), _SDK), MessagesReply)

    async def _events(
        self, client: "AsyncAnthropic", request: ModelRequest, reply: "MessagesReply", /
    ) -> AsyncGenerator[ServerEvent]:
        body = request_body(self._endpoint, request)
        for pauses in range(1 + MAX_PAUSES):
            async with posted(client, "/v1/messages", body) as chunks, aclosing(events_in(chunks)) as events:
                async for event in events:
                    yield event
            if not reply.paused or pauses == MAX_PAUSES:
                break
            body = request_body(self._endpoint, request, so_far=reply.resume())


def _connect(endpoint: Endpoint) -> "AsyncAnthropic":
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(
        api_key=endpoint.api_key,
        base_url=endpoint.base_url,
        timeout=TIMEOUT,
        max_retries=0,
        http_client=http_client(endpoint, choose_key_header(endpoint)),
    )


def remove_version(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint as the SDK wants it, which adds the version to the path itself; users write it as for other
    APIs.
    """
    root = (endpoint.base_url or ANTHROPIC).rstrip("/").removesuffix("/v1")
    return replace(endpoint, base_url=root)


def choose_key_header(endpoint: Endpoint) -> KeyHeader:
    """Return the header of the key: the SDK sends a bearer token; servers that only imitate the API look for its older
    header.
    """
    if endpoint.base_url == ANTHROPIC:
        return "authorization"
    return "x-api-key"


def request_body(endpoint: Endpoint, request: ModelRequest, *, so_far: Sequence[JsonObject] = ()) -> JsonObject:
    """The whole body of the HTTP request; `so_far` are the blocks of a reply that the API is to go on with."""
    begun: list[JsonValue] = [{"role": "assistant", "content": list(so_far)}] if so_far else []
    beginning, end = MARK, MARK
    if request.long_waits:
        beginning = LONG_MARK
    if "cache_control" in endpoint.extra_body:  # the user's own way; the API takes no more than four marks in all
        beginning = end = {}
    turns, marks = _make_turns(request, beginning, end)
    tools = _tools(request.all_tools)
    if marks < MAX_MARKS - 1:
        _mark_last_ordinary(tools, request.all_tools, beginning)
    tools.extend({"type": _NATIVE_TOOLS[tool], "name": tool} for tool in endpoint.native_tools)
    body: JsonObject = {
        "model": endpoint.model,
        "max_tokens": request.max_output_tokens or endpoint.max_output_tokens or MESSAGES_OUTPUT,
        "system": request.system and [add_mark({"type": "text", "text": request.system}, beginning)],
        "messages": [*turns, *begun],
        "stream": True,
    }
    settings: dict[str, JsonValue] = {"temperature": endpoint.temperature, "top_p": endpoint.top_p}
    body.update({name: value for name, value in settings.items() if value is not None})
    body.update(request_thinking(endpoint.reasoning_effort))
    body.update(endpoint.extra_body)
    if tools:
        body["tools"] = tools
    if request.all_tools:
        body["tool_choice"] = choose_tool_choice(request, body.get("thinking"))
    return clean_object({**body, **endpoint.extra_body})


def _tools(specs: Sequence[ToolSpec]) -> list[JsonValue]:
    return [{"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in specs]


def _mark_last_ordinary(tools: list[JsonValue], specs: Sequence[ToolSpec], mark: JsonObject) -> None:
    """Put a mark at the last tool that is the same in all kinds of rounds."""
    for place in reversed(range(len(specs))):
        if specs[place].name not in WORKFLOW_TOOLS:
            tools[place] = add_mark(tools[place], mark)
            return


def choose_tool_choice(request: ModelRequest, thinking: JsonValue) -> JsonObject:
    """Return what the API is told of calls. It refuses to force a tool on a model that thinks."""
    thinks = isinstance(thinking, dict) and thinking.get("type") != "disabled"
    if request.must_call_tool and not thinks:
        return {"type": "any"}
    return {"type": "auto"}


def request_thinking(effort: str | None) -> JsonObject:
    """Return the parts of a request that set how long the model thinks."""
    if effort is None:
        return {}
    if effort == "none":
        return {"thinking": {"type": "disabled"}}
    return {
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "low" if effort == "minimal" else effort},
    }


def _make_turns(request: ModelRequest, beginning: JsonObject, end: JsonObject) -> tuple[list[JsonObject], int]:
    """Messages as turns, with marks where a cache looks for what it has; and how many marks these are.

    A mark finds what was kept up to `LOOKBACK` blocks before it: where this step adds no more, the end of the step
    before needs none.
    """
    blocks = [list(_blocks(message)) for message in request.messages]
    marked, last = find_marked_messages(request), len(request.messages) - 1
    kept = [place for place in marked if place in request.shared_ends or place == last]
    for place in marked:
        if place not in kept and sum(map(len, blocks[place + 1 :])) >= LOOKBACK:
            kept.append(place)
    kept = sorted(kept)[-MAX_MARKS + 1 :]
    for place in filter(blocks.__getitem__, kept):
        mark = end
        if place in request.shared_ends:
            mark = beginning
        blocks[place][-1] = add_mark(blocks[place][-1], mark)
    return list(_turns(request.messages, blocks)), len(kept)


def _turns(messages: Sequence[Message], of_messages: Sequence[list[JsonValue]]) -> Iterator[JsonObject]:
    """Messages as alternating turns: the results of all calls and a user's message after them are one turn."""
    role = ""
    blocks: list[JsonValue] = []
    for message, its_blocks in zip(messages, of_messages, strict=True):
        its_role = "assistant" if isinstance(message, AssistantMessage) else "user"
        if its_role != role and its_blocks:
            if blocks:
                yield {"role": role, "content": blocks}
            role, blocks = its_role, []
        blocks = [*blocks, *its_blocks]
    if blocks:
        yield {"role": role, "content": blocks}


def _blocks(message: Message) -> Iterator[JsonValue]:
    match message:
        case UserMessage():
            yield {"type": "text", "text": message.text}
        case ToolResultMessage():
            yield {
                "type": "tool_result",
                "tool_use_id": message.call_id,
                "content": message.text,
                "is_error": message.is_error,
            }
        case AssistantMessage(replay=()):
            # The API refuses blank text.
            if message.text.strip():
                yield {"type": "text", "text": message.text}
            yield from map(tool_use, message.tool_calls)
        case AssistantMessage():
            yield from message.replay


# -- one reply of Anthropic's Messages API, put together out of its events --------------------------------------------


MAX_PAUSES = 10
"""How often the API may interrupt one reply, which it does when tools of its own take long."""


def tool_use(call: ToolCall) -> JsonObject:
    return {
        "type": "tool_use",
        "id": call.id,
        "name": tool_name(call.name),
        "input": arguments_object(call.arguments),
    }


@dataclass(slots=True)
class _OpenBlock:
    start: Fields
    draft: Draft | None = None
    pieces: list[str] = field(default_factory=list[str])
    signature: str = ""


class MessagesReply(WireReply):
    """Puts the events of one reply together."""

    def __init__(self, endpoint: Endpoint, request: ModelRequest) -> None:
        super().__init__(endpoint, request)
        self._open: dict[int, _OpenBlock] = {}
        self._blocks: list[JsonObject] = []
        self._thought = False
        self._served = False
        self._stop_reason: object = None
        self._sequence: object = None
        """The stop sequence that the reply ended with, where it did."""
        self._stopped = False
        self._usage = MessagesUsage()
        self._citations: list[Citation] = []

    def read(self, sent: ServerEvent) -> Iterator[Part]:
        if sent.name == "error":
            body = parse_leniently(sent.data)
            raise of_event(body, str(body), self._endpoint)
        if sent.name in ("", "ping"):
            return
        event = fields_of(parsed(sent.data), "an event")
        match event.get("type"):
            case "message_start":
                self._usage.model = member(event, "message", "model")
                self._usage.hear(member(event, "message", "usage"))
            case "content_block_start":
                yield from self._start(
                    needed_int(event, "index"), fields_of(event.get("content_block"), "content_block")
                )
            case "content_block_delta":
                yield from self._delta(self._open[needed_int(event, "index")], fields_of(event.get("delta"), "delta"))
            case "content_block_stop":
                yield from self._close(self._open.pop(needed_int(event, "index")))
            case "message_delta":
                delta = fields_of(event.get("delta"), "delta")
                self._stop_reason = delta.get("stop_reason") or self._stop_reason
                self._sequence = delta.get("stop_sequence") or self._sequence
                self._usage.hear(event.get("usage"))
            case "message_stop":
                self._stopped = True
            case _:
                pass

    @property
    def paused(self) -> bool:
        return self._served and self._stopped and self._stop_reason == "pause_turn"

    def resume(self) -> list[JsonObject]:
        """Get ready for the rest of a paused reply; returns the blocks that are there."""
        self._usage.next_request()
        self._stopped, self._stop_reason = False, None
        return list(self._blocks)

    def finish(self) -> Iterator[Part]:
        if not self._stopped or not self._stop_reason:
            raise cut_off(self._endpoint)
        for index in sorted(self._open):
            yield from self._close(self._open.pop(index))
        if self._citations:
            yield CitationsPart(tuple(self._citations))
        yield self._usage.total()
        if self.paused:
            message = f"{self._endpoint.base_url} paused the reply more than {MAX_PAUSES} times"
            raise failure("bad_reply", message, self._endpoint)
        stop = stop_of(MESSAGES, self._stop_reason, self._called)
        # LMDeploy calls what it broke off a `stop_sequence`, and names none; who has met one names it.
        if stop is None or (stop == "end" and self._stop_reason == "stop_sequence" and not self._sequence):
            raise broken_off(f"stop_reason {self._stop_reason}", self._endpoint)
        # Without thinking or tools of the API there is nothing that the plain messages do not tell as well.
        replay = tuple(self._blocks) if self._thought or self._served else ()
        yield StopPart(stop, replay, provider_word=str(self._stop_reason))

    def _start(self, index: int, block: Fields) -> Iterator[Part]:
        self._open[index] = opened = _OpenBlock(block)
        match block.get("type"):
            case "text" if text := text_in(block, "text"):
                opened.pieces.append(text)
                yield TextPart(clean(text))
            case "thinking" if thinking := text_in(block, "thinking"):
                opened.pieces.append(thinking)
                opened.signature = text_in(block, "signature")
                yield ReasoningPart(clean(thinking))
            case "tool_use":
                opened.draft = self._drafts.begin(text_in(block, "name"))
            case _:
                pass

    def _delta(self, block: _OpenBlock, delta: Fields) -> Iterator[Part]:
        match delta.get("type"):
            case "text_delta":
                text = needed_text(delta, "text")
                block.pieces.append(text)
                yield TextPart(clean(text))
            case "thinking_delta":
                thinking = needed_text(delta, "thinking")
                block.pieces.append(thinking)
                yield ReasoningPart(clean(thinking))
            case "citations_delta":
                if cited := citation(member(delta, "citation", "url"), member(delta, "citation", "title")):
                    self._citations.append(cited)
            case "signature_delta":
                block.signature += needed_text(delta, "signature")
            case "input_json_delta":
                piece = needed_text(delta, "partial_json")
                block.pieces.append(piece)
                if block.draft and (draft := block.draft.add(piece)):
                    yield DraftPart(draft)
            case _:
                pass

    def _close(self, opened: _OpenBlock) -> Iterator[Part]:
        block, text = opened.start, clean("".join(opened.pieces))
        kind = needed_text(block, "type")
        if kind == "text" and text.strip():
            self._blocks.append({"type": "text", "text": text})
        elif kind == "thinking" and opened.signature:
            self._thought = True
            self._blocks.append({"type": "thinking", "thinking": text, "signature": opened.signature})
        elif kind == "redacted_thinking":
            self._thought = True
            self._blocks.append({"type": "redacted_thinking", "data": needed_text(block, "data")})
        elif kind == "tool_use":
            arguments = text or json.dumps(block.get("input") or {})
            self._called.append(arguments)
            call = ToolCall(self._ids.take(text_in(block, "id")), clean(needed_text(block, "name")), arguments)
            self._blocks.append(tool_use(call))
            yield ToolCallPart(call)
        elif kind == "server_tool_use":
            self._served = True
            given = arguments_object(text) if text else json_object(fields_of(block.get("input"), "input"))
            served: JsonObject = {"type": kind, "id": needed_text(block, "id"), "name": needed_text(block, "name")}
            self._blocks.append({**served, "input": given})
        elif kind.endswith("_tool_result"):
            self._blocks.append(clean_object(json_object(block)))
