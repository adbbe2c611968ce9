"""Anthropic's Messages API. Thinking is sent back as it came, with its signature."""

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from massgen_mcp.backends.base import (
    AssistantMessage,
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
    UsagePart,
    UserMessage,
)
from massgen_mcp.backends.ends import MESSAGES, stop_of
from massgen_mcp.backends.failures import broken_off, cut_off, failure, translated
from massgen_mcp.backends.http import TIMEOUT, Endpoint, KeyHeader, LazyClient, http_client
from massgen_mcp.backends.usage import count, member, usage_part
from massgen_mcp.backends.wiretext import CallIds, arguments_object, clean, clean_object, tool_name
from massgen_mcp.config.providers import MESSAGES_OUTPUT

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import RawContentBlockDelta, RawMessageStreamEvent
    from anthropic.types.raw_content_block_start_event import ContentBlock

ANTHROPIC = "https://api.anthropic.com"

_SDK = ("anthropic", "anthropic.resources.messages")
"""What is imported before the first call: the SDK itself would import its resources on the event loop."""

_NATIVE_TOOLS: dict[str, str] = {"web_search": "web_search_20250305", "code_execution": "code_execution_20250825"}
"""Versions that every current model has; later ones want further tools or newer models."""

MAX_PAUSES = 10
"""How often the API may interrupt one reply, which it does when tools of its own take long."""


class ClaudeBackend:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        # The SDK adds the version to the path itself; users write it as for other APIs.
        self._base_url = (endpoint.base_url or ANTHROPIC).rstrip("/").removesuffix("/v1")
        self._client = LazyClient(lambda: _connect(endpoint, self._base_url), *_SDK)

    @property
    def model(self) -> str:
        return self._endpoint.model

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        body = request_body(self._endpoint, request)
        with translated(self._endpoint, self._base_url):
            client = await self._client.get()
            reply = _Reply(self._endpoint, self._base_url, CallIds(request.messages))
            for pauses in range(1 + MAX_PAUSES):
                async with await client.messages.create(
                    # The body is ours alone: `extra_body` replaces what the SDK makes of its own parameters.
                    model=self.model,
                    messages=(),
                    max_tokens=MESSAGES_OUTPUT,
                    stream=True,
                    extra_body=body,
                ) as events:
                    async for event in events:
                        for part in reply.read(event):
                            yield part
                if not reply.paused or pauses == MAX_PAUSES:
                    break
                body = request_body(self._endpoint, request, so_far=reply.resume())
            for part in reply.finish():
                yield part

    async def aclose(self) -> None:
        await self._client.aclose()


def _connect(endpoint: Endpoint, base_url: str) -> "AsyncAnthropic":
    from anthropic import AsyncAnthropic

    # The SDK sends a bearer token; servers that only imitate the API look for its older header.
    key_header: KeyHeader = "authorization" if base_url == ANTHROPIC else "x-api-key"
    return AsyncAnthropic(
        api_key=endpoint.api_key,
        base_url=base_url,
        timeout=TIMEOUT,
        max_retries=0,
        http_client=http_client(endpoint.api_key, key_header),
    )


def request_body(endpoint: Endpoint, request: ModelRequest, *, so_far: Sequence[JsonObject] = ()) -> JsonObject:
    """The whole body of the HTTP request; `so_far` are the blocks of a reply that the API is to go on with."""
    begun: list[JsonValue] = [{"role": "assistant", "content": list(so_far)}] if so_far else []
    body: JsonObject = {
        "model": endpoint.model,
        "max_tokens": request.max_output_tokens or endpoint.max_output_tokens or MESSAGES_OUTPUT,
        "system": request.system,
        "messages": [*_turns(request.messages), *begun],
        "stream": True,
    }
    settings: dict[str, JsonValue] = {"temperature": endpoint.temperature, "top_p": endpoint.top_p}
    body.update({name: value for name, value in settings.items() if value is not None})
    body.update(_thinking(endpoint.reasoning_effort))
    body.update(endpoint.extra_body)
    tools: list[JsonValue] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in request.tools
    ]
    tools.extend({"type": _NATIVE_TOOLS[tool], "name": tool} for tool in endpoint.native_tools)
    if tools:
        body["tools"] = tools
    if request.tools:
        thinking = body.get("thinking")
        thinks = isinstance(thinking, dict) and thinking.get("type") != "disabled"
        # The API refuses to force a tool on a model that thinks.
        body["tool_choice"] = {"type": "any" if request.must_call_tool and not thinks else "auto"}
    return clean_object({**body, **endpoint.extra_body})


def _thinking(effort: str | None) -> JsonObject:
    if effort is None:
        return {}
    if effort == "none":
        return {"thinking": {"type": "disabled"}}
    return {
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "low" if effort == "minimal" else effort},
    }


def _turns(messages: tuple[Message, ...]) -> Iterator[JsonObject]:
    """Messages as alternating turns: the results of all calls and a user's message after them are one turn."""
    role = ""
    blocks: list[JsonValue] = []
    for message in messages:
        its_role = "assistant" if isinstance(message, AssistantMessage) else "user"
        its_blocks = list(_blocks(message))
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
            yield from map(_tool_use, message.tool_calls)
        case AssistantMessage():
            yield from message.replay


def _tool_use(call: ToolCall) -> JsonObject:
    return {
        "type": "tool_use",
        "id": call.id,
        "name": tool_name(call.name),
        "input": arguments_object(call.arguments),
    }


@dataclass(slots=True)
class _OpenBlock:
    start: "ContentBlock"
    pieces: list[str] = field(default_factory=list[str])
    signature: str = ""


class _Reply:
    """Puts the events of one reply together."""

    def __init__(self, endpoint: Endpoint, base_url: str, ids: CallIds) -> None:
        self._endpoint = endpoint
        self._base_url = base_url
        self._ids = ids
        self._open: dict[int, _OpenBlock] = {}
        self._blocks: list[JsonObject] = []
        self._thought = False
        self._served = False
        self._called = False
        self._stop_reason: object = None
        self._sequence: object = None
        """The stop sequence that the reply ended with, where it did."""
        self._stopped = False
        self._spent: UsagePart | None = None
        """Of the requests before a pause."""
        self._counts: dict[str, int] = {}
        """By the API's own names, as they were told last."""
        self._model: object = None

    def read(self, event: "RawMessageStreamEvent") -> Iterator[Part]:
        match event.type:
            case "message_start":
                self._model = getattr(event.message, "model", None)
                self._count(getattr(event.message, "usage", None))
            case "content_block_start":
                yield from self._start(event.index, event.content_block)
            case "content_block_delta":
                yield from self._delta(self._open[event.index], event.delta)
            case "content_block_stop":
                yield from self._close(self._open.pop(event.index))
            case "message_delta":
                self._stop_reason = event.delta.stop_reason or self._stop_reason
                self._sequence = getattr(event.delta, "stop_sequence", None) or self._sequence
                self._count(getattr(event, "usage", None))
            case "message_stop":
                self._stopped = True
            case _:
                pass

    @property
    def paused(self) -> bool:
        return self._served and self._stopped and self._stop_reason == "pause_turn"

    def resume(self) -> list[JsonObject]:
        """Get ready for the rest of a paused reply; returns the blocks that are there."""
        self._spent, self._counts, self._stopped, self._stop_reason = self._total(), {}, False, None
        return list(self._blocks)

    def finish(self) -> Iterator[Part]:
        if not self._stopped or not self._stop_reason:
            raise cut_off(self._endpoint, self._base_url)
        for index in sorted(self._open):
            yield from self._close(self._open.pop(index))
        yield self._total()
        if self.paused:
            told = f"{self._base_url} paused the reply more than {MAX_PAUSES} times"
            raise failure("bad_reply", told, self._endpoint)
        stop = stop_of(MESSAGES, self._stop_reason, called=self._called)
        # LMDeploy calls what it broke off a `stop_sequence`, and names none; who has met one names it.
        if stop is None or (stop == "end" and self._stop_reason == "stop_sequence" and not self._sequence):
            raise broken_off(f"stop_reason {self._stop_reason}", self._endpoint, self._base_url)
        # Without thinking or tools of the API there is nothing that the plain messages do not tell as well.
        yield StopPart(stop, replay=tuple(self._blocks) if self._thought or self._served else ())

    def _start(self, index: int, block: "ContentBlock") -> Iterator[Part]:
        self._open[index] = opened = _OpenBlock(block)
        if block.type == "text" and block.text:
            opened.pieces.append(block.text)
            yield TextPart(clean(block.text))
        elif block.type == "thinking" and block.thinking:
            # The SDK leaves out what a server left out, even where its types promise a value.
            opened.pieces.append(block.thinking)
            opened.signature = getattr(block, "signature", "")
            yield ReasoningPart(clean(block.thinking))

    def _delta(self, block: _OpenBlock, delta: "RawContentBlockDelta") -> Iterator[Part]:
        match delta.type:
            case "text_delta":
                block.pieces.append(delta.text)
                yield TextPart(clean(delta.text))
            case "thinking_delta":
                block.pieces.append(delta.thinking)
                yield ReasoningPart(clean(delta.thinking))
            case "signature_delta":
                block.signature += delta.signature
            case "input_json_delta":
                block.pieces.append(delta.partial_json)
            case _:
                pass

    def _close(self, opened: _OpenBlock) -> Iterator[Part]:
        block, text = opened.start, clean("".join(opened.pieces))
        if block.type == "text" and text.strip():
            self._blocks.append({"type": "text", "text": text})
        elif block.type == "thinking" and opened.signature:
            self._thought = True
            self._blocks.append({"type": "thinking", "thinking": text, "signature": opened.signature})
        elif block.type == "redacted_thinking":
            self._thought = True
            self._blocks.append({"type": "redacted_thinking", "data": block.data})
        elif block.type == "tool_use":
            self._called = True
            call = ToolCall(self._ids.take(block.id), clean(block.name), text or json.dumps(block.input or {}))
            self._blocks.append(_tool_use(call))
            yield ToolCallPart(call)
        elif block.type == "server_tool_use":
            self._served = True
            given = arguments_object(text) if text else cast("JsonObject", block.input)
            self._blocks.append({"type": block.type, "id": block.id, "name": block.name, "input": given})
        elif block.type.endswith("_tool_result"):
            self._blocks.append(clean_object(block.model_dump(mode="json", exclude_unset=True)))

    def _total(self) -> UsagePart:
        """Everything since the first of the reply's requests."""
        counts, before = self._counts, self._spent or UsagePart(0, 0, 0, 0)
        uncached, cached = counts.get("input_tokens"), counts.get("cache_read_input_tokens", 0)
        cache_written = counts.get("cache_creation_input_tokens", 0)
        # The API counts cached input apart, we do not.
        read = None if uncached is None else uncached + cached + cache_written
        return usage_part(
            self._model or before.model,
            read=_sum(before.input_tokens, read),
            written=_sum(before.output_tokens, counts.get("output_tokens")),
            cached=before.cached_input_tokens + cached,
            cache_written=before.cache_write_tokens + cache_written,
            reasoning=before.reasoning_tokens + counts.get("thinking_tokens", 0),
            searches=before.web_searches + counts.get("web_search_requests", 0),
        )

    def _count(self, usage: object) -> None:
        """Counts are running totals; some servers set back to 0 what they have told."""
        for path in _COUNTS:
            if told := count(member(usage, *path)):
                self._counts[path[-1]] = told
            elif told == 0:
                self._counts.setdefault(path[-1], 0)


_COUNTS = (
    ("input_tokens",),
    ("cache_read_input_tokens",),
    ("cache_creation_input_tokens",),
    ("output_tokens",),
    ("output_tokens_details", "thinking_tokens"),
    ("server_tool_use", "web_search_requests"),
)


def _sum(one: int | None, other: int | None) -> int | None:
    """Unknown where a part is."""
    return None if one is None or other is None else one + other
