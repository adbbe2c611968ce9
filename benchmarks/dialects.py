"""How the local model speaks each wire: the tools that a request offers, and the events of a reply.

A reply is a text, or the call of a tool. Must not know what is measured.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

NAME = "local"
_INPUT, _OUTPUT = 100, 10
"""Tokens of every request and of every reply."""

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Played:
    """What is replied: the arguments of a call of `tool`, as JSON, or text. `number` tells it from other replies."""

    number: int
    text: str
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """`tools`: the schema of the arguments of each tool on offer, by name. `last`: what ends the stream after them."""

    tools: Callable[[Event], dict[str, Event]]
    events: Callable[[Played], Iterator[Event]]
    last: str = ""

    def stream(self, played: Played) -> bytes:
        """The whole reply: server-sent events, each a chunk of the transfer."""
        chunks: list[bytes] = []
        for event in self.events(played):
            name = f"event: {event['type']}\n" if "type" in event else ""
            chunks.append(f"{name}data: {json.dumps(event)}\n\n".encode())
        if self.last:
            chunks.append(f"data: {self.last}\n\n".encode())
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        return head + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def _halves(text: str) -> tuple[str, str]:
    return text[:10], text[10:]


# -- Chat Completions -------------------------------------------------------------------------------------------------


def _chat_tools(request: Event) -> dict[str, Event]:
    return {tool["function"]["name"]: tool["function"]["parameters"] for tool in request.get("tools", ())}


def _chat(played: Played) -> Iterator[Event]:
    frame = {"id": "chatcmpl-local", "object": "chat.completion.chunk", "created": int(time.time()), "model": NAME}
    deltas: Iterable[Event]
    if played.tool is None:
        deltas = [{"content": half} for half in _halves(played.text)]
    else:
        opening = {"index": 0, "id": f"call_{played.number}", "type": "function"}
        halves = [{"tool_calls": [{"index": 0, "function": {"arguments": half}}]} for half in _halves(played.text)]
        deltas = [{"tool_calls": [{**opening, "function": {"name": played.tool, "arguments": ""}}]}, *halves]
    for delta in ({"role": "assistant", "content": None}, *deltas):
        yield {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    finish = "stop" if played.tool is None else "tool_calls"
    yield {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    usage = {"prompt_tokens": _INPUT, "completion_tokens": _OUTPUT, "total_tokens": _INPUT + _OUTPUT}
    yield {**frame, "choices": [], "usage": usage}


# -- Responses --------------------------------------------------------------------------------------------------------


def _responses_tools(request: Event) -> dict[str, Event]:
    return {tool["name"]: tool["parameters"] for tool in request.get("tools", ()) if tool["type"] == "function"}


def _responses(played: Played) -> Iterator[Event]:
    response: dict[str, Any] = {
        "id": f"resp_{played.number}", "object": "response", "created_at": int(time.time()), "model": NAME,
        "output": [], "status": "in_progress", "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip
    yield {"type": "response.created", "sequence_number": 0, "response": response}
    item: dict[str, Any]
    written: dict[str, Any]
    empty: dict[str, Any]
    more: dict[str, Any]
    if played.tool is None:
        item = {"type": "message", "id": f"msg_{played.number}", "role": "assistant"}
        written = {"content": [{"type": "output_text", "text": played.text, "annotations": [], "logprobs": []}]}
        kind = "response.output_text.delta"
        more = {"content_index": 0, "logprobs": []}
        empty = {"content": []}
    else:
        call = f"call_{played.number}"
        item = {"type": "function_call", "id": f"fc_{played.number}", "call_id": call, "name": played.tool}
        written, empty = {"arguments": played.text}, {"arguments": ""}
        kind, more = "response.function_call_arguments.delta", {}
    started = {**item, **empty, "status": "in_progress"}
    ended = {**item, **written, "status": "completed"}
    yield {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": started}
    for place, half in enumerate(_halves(played.text)):
        where = {"sequence_number": 2 + place, "item_id": item["id"], "output_index": 0}
        yield {"type": kind, **where, "delta": half, **more}
    yield {"type": "response.output_item.done", "sequence_number": 4, "output_index": 0, "item": ended}
    usage = {
        "input_tokens": _INPUT, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": _OUTPUT,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": _INPUT + _OUTPUT,
    }  # fmt: skip
    whole = {**response, "status": "completed", "output": [ended], "usage": usage}
    yield {"type": "response.completed", "sequence_number": 5, "response": whole}


# -- Messages ---------------------------------------------------------------------------------------------------------


def _messages_tools(request: Event) -> dict[str, Event]:
    return {tool["name"]: tool["input_schema"] for tool in request.get("tools", ())}


def _messages(played: Played) -> Iterator[Event]:
    message: dict[str, Any] = {
        "id": f"msg_{played.number}", "type": "message", "role": "assistant", "model": NAME, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": _INPUT, "output_tokens": 1},
    }  # fmt: skip
    yield {"type": "message_start", "message": message}
    block: dict[str, Any] = {"type": "text", "text": ""}
    member = ("text_delta", "text")
    if played.tool is not None:
        block = {"type": "tool_use", "id": f"toolu_{played.number}", "name": played.tool, "input": {}}
        member = ("input_json_delta", "partial_json")
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    for half in _halves(played.text):
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": member[0], member[1]: half}}
    yield {"type": "content_block_stop", "index": 0}
    stop = {"stop_reason": "end_turn" if played.tool is None else "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": _OUTPUT}}
    yield {"type": "message_stop"}


DIALECTS = {
    "/chat/completions": Dialect(_chat_tools, _chat, "[DONE]"),
    "/responses": Dialect(_responses_tools, _responses),
    "/messages": Dialect(_messages_tools, _messages),
}
"""By how the path of a request ends."""
