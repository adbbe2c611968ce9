"""A model that writes as much as it is told: three wires over server-sent events, on 127.0.0.1, a process of its own.

What it plays is in the path of the request, before the path of the API: `/TOKENS/KIND/PACE`. KIND is `text`, or `call`
for a call of `new_answer`; at the pace `burst` everything comes at once, at `live` token by token, as from a provider.
Events look as the providers send them. Must not know what is measured.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from benchmarks.model_process import ModelProcess

NAME = "local"
WORDS = (
    " forty",
    "-two",
    ",",
    " because",
    " six",
    " times",
    " seven",
    " is",
    " just",
    " that",
    ".",
    " \\u201eso\\u201c",
)
"""Tokens, as they stand in JSON text."""
LIVE_SECONDS = 0.0005
"""Between two tokens at the live pace; long enough for the client to read each by itself."""

Events = Iterator[dict[str, Any]]


class StreamingModel(ModelProcess):
    """The model's process."""

    def __init__(self) -> None:
        super().__init__("benchmarks.streaming_model")


def _pieces(tokens: int, kind: str) -> Iterator[str]:
    """What the model writes, piece by piece: text, or the JSON text of the call's arguments."""
    written = (WORDS[number % len(WORDS)] for number in range(tokens))
    if kind == "text":
        yield from (json.loads(f'"{piece}"') for piece in written)
    else:
        yield '{"content":"'
        yield from written
        yield '"}'


def _chat(tokens: int, kind: str) -> Events:
    frame = {
        "id": "chatcmpl-BxkZ7u6p4Y1hT3nQw9sVr2mLc8dFa", "object": "chat.completion.chunk", "created": 1763787600,
        "model": NAME, "service_tier": "default", "system_fingerprint": "fp_a1102cf978",
    }  # fmt: skip

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**frame, "choices": [choice], "usage": None, "obfuscation": "hT8sK2pQ"}

    if kind == "text":
        yield chunk({"role": "assistant", "content": "", "refusal": None})
        yield from (chunk({"content": piece}) for piece in _pieces(tokens, kind))
    else:
        function = {"name": "new_answer", "arguments": ""}
        opening = {"index": 0, "id": "call_1", "type": "function", "function": function}
        yield chunk({"role": "assistant", "content": None, "tool_calls": [opening]})
        for piece in _pieces(tokens, kind):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    yield chunk({}, "stop" if kind == "text" else "tool_calls")
    usage = {"prompt_tokens": 100, "completion_tokens": tokens, "total_tokens": 100 + tokens}
    yield {**frame, "choices": [], "usage": usage}


def _responses(tokens: int, kind: str) -> Events:
    response: dict[str, Any] = {
        "id": "resp_1", "object": "response", "created_at": 1763787600, "model": NAME, "output": [],
        "status": "in_progress", "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip
    yield {"type": "response.created", "sequence_number": 0, "response": response}
    place = {"item_id": "item_68e1f0a1b2c3d4e5f6a7b8c9d0e1f2a3", "output_index": 0}
    pieces = list(_pieces(tokens, kind))
    if kind == "text":
        item: dict[str, Any] = {"type": "message", "id": place["item_id"], "role": "assistant", "status": "completed"}
        item["content"] = [{"type": "output_text", "text": "".join(pieces), "annotations": [], "logprobs": []}]
        started: dict[str, Any] = {**item, "status": "in_progress", "content": []}
        more: dict[str, Any] = {"content_index": 0, "logprobs": []}
        told = "response.output_text.delta"
    else:
        item = {"type": "function_call", "id": place["item_id"], "call_id": "call_1", "name": "new_answer"}
        item |= {"arguments": "".join(pieces), "status": "completed"}
        started = {**item, "arguments": "", "status": "in_progress"}
        more = {}
        told = "response.function_call_arguments.delta"
    yield {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": started}
    for number, piece in enumerate(pieces):
        tail = {"obfuscation": "hT8sK2pQ"}
        yield {"type": told, "sequence_number": 2 + number, **place, **more, "delta": piece, **tail}
    yield {"type": "response.output_item.done", "sequence_number": 2 + len(pieces), "output_index": 0, "item": item}
    usage = {
        "input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": tokens,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 100 + tokens,
    }  # fmt: skip
    ended = {**response, "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.completed", "sequence_number": 3 + len(pieces), "response": ended}


def _messages(tokens: int, kind: str) -> Events:
    message: dict[str, Any] = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": NAME, "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 100, "output_tokens": 1},
    }  # fmt: skip
    yield {"type": "message_start", "message": message}
    call: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "new_answer", "input": {}}
    block = {"type": "text", "text": ""} if kind == "text" else call
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    for piece in _pieces(tokens, kind):
        member = ("text_delta", "text") if kind == "text" else ("input_json_delta", "partial_json")
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": member[0], member[1]: piece}}
    yield {"type": "content_block_stop", "index": 0}
    stop = {"stop_reason": "end_turn" if kind == "text" else "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": tokens}}
    yield {"type": "message_stop"}


_WIRES = {"/chat/completions": _chat, "/responses": _responses, "/messages": _messages}


def _events(path: str) -> list[bytes]:
    """The events that a request for this path is answered with, each a chunk of the transfer."""
    _, tokens, kind, _, *_ = path.split("/")
    wire = next(play for ending, play in _WIRES.items() if path.endswith(ending))
    chunks: list[bytes] = []
    for event in wire(int(tokens), kind):
        name = f"event: {event['type']}\n" if "type" in event else ""
        chunks.append(f"{name}data: {json.dumps(event, separators=(',', ':'))}\n\n".encode())
    if wire is _chat:
        chunks.append(b"data: [DONE]\n\n")
    return [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks]


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One kept-alive connection, request after request, until the client leaves."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            headers = {name.lower(): value for name, _, value in (line.partition(":") for line in head.split("\r\n"))}
            await reader.readexactly(int(headers.get("content-length", "0")))
            path = head.split(" ")[1]
            chunks = _events(path)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            if "/live/" in path:
                for chunk in chunks:
                    writer.write(chunk)
                    await writer.drain()
                    await asyncio.sleep(LIVE_SECONDS)
            else:
                writer.write(b"".join(chunks))
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main())
