"""One reply of Anthropic's Messages API, put together out of its events.

Must not know requests, apart from how a call goes back into one.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from massgen_mcp.backends.base import (
    Citation,
    CitationsPart,
    DraftPart,
    JsonObject,
    ModelRequest,
    Part,
    ReasoningPart,
    StopPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    UsagePart,
)
from massgen_mcp.backends.drafts import Draft
from massgen_mcp.backends.ends import MESSAGES, stop_of
from massgen_mcp.backends.event_stream import ServerEvent
from massgen_mcp.backends.failures import broken_off, cut_off, failure, of_event
from massgen_mcp.backends.fields import Fields, fields_of, json_object, needed_int, needed_text, parsed, text_in
from massgen_mcp.backends.http import Endpoint
from massgen_mcp.backends.streamed import WireReply
from massgen_mcp.backends.usage import count, member, usage_part
from massgen_mcp.backends.wiretext import arguments_object, citation, clean, clean_object, tool_name
from massgen_mcp.errors import BackendError

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

    def __init__(self, endpoint: Endpoint, base_url: str, request: ModelRequest) -> None:
        super().__init__(endpoint, base_url, request)
        self._open: dict[int, _OpenBlock] = {}
        self._blocks: list[JsonObject] = []
        self._thought = False
        self._served = False
        self._called: list[str] = []
        """The arguments of the calls."""
        self._stop_reason: object = None
        self._sequence: object = None
        """The stop sequence that the reply ended with, where it did."""
        self._stopped = False
        self._spent: UsagePart | None = None
        """Of the requests before a pause."""
        self._counts: dict[str, int] = {}
        """By the API's own names, as they were told last."""
        self._model: object = None
        self._citations: list[Citation] = []

    def read(self, sent: ServerEvent) -> Iterator[Part]:
        if sent.name == "error":
            raise self._error(sent.data)
        if sent.name in ("", "ping"):
            return
        event = fields_of(parsed(sent.data), "an event")
        match event.get("type"):
            case "message_start":
                self._model = member(event, "message", "model")
                self._count(member(event, "message", "usage"))
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
                self._count(event.get("usage"))
            case "message_stop":
                self._stopped = True
            case _:
                pass

    def _error(self, data: str) -> BackendError:
        """An error event, which may be any text."""
        try:
            body = parsed(data)
        except (ValueError, RecursionError):
            body = data
        return of_event(body, str(body), self._endpoint, self._base_url)

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
        if self._citations:
            yield CitationsPart(tuple(self._citations))
        yield self._total()
        if self.paused:
            message = f"{self._base_url} paused the reply more than {MAX_PAUSES} times"
            raise failure("bad_reply", message, self._endpoint)
        stop = stop_of(MESSAGES, self._stop_reason, self._called)
        # LMDeploy calls what it broke off a `stop_sequence`, and names none; who has met one names it.
        if stop is None or (stop == "end" and self._stop_reason == "stop_sequence" and not self._sequence):
            raise broken_off(f"stop_reason {self._stop_reason}", self._endpoint, self._base_url)
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
            if number := count(member(usage, *path)):
                self._counts[path[-1]] = number
            elif number == 0:
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
