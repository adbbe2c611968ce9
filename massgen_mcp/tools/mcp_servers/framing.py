"""One JSON-RPC message a line, over the pipes of a process, with bounds that a server cannot exceed; and made readable
where something in it is wrong or unknown, which must not take the rest along.

A message that is too large is dropped, and the call that it answered fails; a server that floods is given up. What is
left of a wrong tool can be called, and the server is to say what it lacks. A part of a result that is of no known kind
becomes text.
"""

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import anyio
import mcp_types
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.streams.memory import MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from pydantic import TypeAdapter, ValidationError

from massgen_mcp.json_rpc import MAX_PARTS, fields, has_too_many_parts
from massgen_mcp.mcp_streams import TransportStreams

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
MAX_UNASKED_MESSAGES = 10_000
MAX_UNASKED_BYTES = 256 * 1024 * 1024
"""What a server may send after a message of ours; more is a flood."""
_HEAD_BYTES = 4096
_CHUNK_BYTES = 64 * 1024
_ID = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*[,}]')
_LIST_CHANGED = "notifications/tools/list_changed"


@asynccontextmanager
async def framed(
    stdin: ByteSendStream, stdout: ByteReceiveStream, on_end: Callable[[str], Awaitable[None]]
) -> AsyncGenerator[TransportStreams]:
    """The streams that the SDK's client speaks over. `on_end` is told when the server says nothing more, and why if
    that is our decision; the client learns of it after that.
    """
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage](0)
    reader = _Reader(to_client)

    async def read() -> None:
        why = ""
        async with to_client:
            try:
                while True:
                    await reader.take(await stdout.receive(_CHUNK_BYTES))
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
                pass
            except _Flood as flood:
                why = str(flood)
            await on_end(why)

    async def write() -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            async with from_client:
                async for message in from_client:
                    reader.asked()
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await stdin.send(f"{text}\n".encode())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        try:
            yield from_server, to_server
        finally:
            tasks.cancel_scope.cancel()
            for stream in (from_server, to_server, to_client, from_client):
                stream.close()


class _Flood(Exception):
    pass


class _Reader:
    """Turns bytes into messages. Of notifications only that the tools changed is passed on; nobody reads the others."""

    def __init__(self, sink: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        self._sink = sink
        self._line = bytearray()
        self._dropped = 0
        """Bytes of a line that is too large, of which only the head is kept."""
        self.asked()

    def asked(self) -> None:
        """A message of ours went out: the server may answer."""
        self._messages = self._bytes = 0

    async def take(self, chunk: bytes) -> None:
        self._bytes += len(chunk)
        if self._bytes > MAX_UNASKED_BYTES:
            raise _Flood(f"it sent more than {MAX_UNASKED_BYTES} bytes without being asked")
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            self._add(piece)
            await self._end_of_line()
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        if self._dropped:
            self._dropped += len(piece)
            return
        self._line += piece
        if len(self._line) > MAX_MESSAGE_BYTES:
            self._dropped = len(self._line)
            del self._line[_HEAD_BYTES:]

    async def _end_of_line(self) -> None:
        line, dropped = bytes(self._line), self._dropped
        self._line.clear()
        self._dropped = 0
        self._messages += 1
        if self._messages > MAX_UNASKED_MESSAGES:
            raise _Flood(f"it sent more than {MAX_UNASKED_MESSAGES} messages without being asked")
        if dropped:
            why = f"the reply has {dropped} bytes, at most {MAX_MESSAGE_BYTES} are taken; ask for less"
            message = _failure(line, why)
            if message is None:
                raise _Flood(f"it sent a message of {dropped} bytes, at most {MAX_MESSAGE_BYTES} are taken")
        else:
            message = _message_of(line)
        if message is not None:
            await self._sink.send(SessionMessage(message))


def _message_of(line: bytes) -> mcp_types.JSONRPCMessage | None:
    """None for what is no message, such as a banner, and for notifications that do not matter here. What seems to be a
    reply and cannot be read becomes the failure of its call.
    """
    if not line.strip():
        return None
    if has_too_many_parts(line):
        return _failure(line[:_HEAD_BYTES], f"the reply has more than {MAX_PARTS} parts; ask for less")
    try:
        message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return _failure(line[:_HEAD_BYTES], "the reply cannot be read")
    if isinstance(message, mcp_types.JSONRPCNotification) and message.method != _LIST_CHANGED:
        return None
    return message


def _failure(head: bytes, why: str) -> mcp_types.JSONRPCMessage | None:
    """The failure of the call that a lost message answered, if its beginning says which one that was."""
    found = _ID.search(head)
    if found is None:
        return None
    error = mcp_types.ErrorData(code=mcp_types.INTERNAL_ERROR, message=why)
    return mcp_types.JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error)


_BLOCK: TypeAdapter[mcp_types.ContentBlock] = TypeAdapter(mcp_types.ContentBlock)
MAX_UNKNOWN = 2000
"""Characters that are shown of a part of a result that is of no known kind."""
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@asynccontextmanager
async def mended(streams: TransportStreams) -> AsyncGenerator[TransportStreams]:
    """The same streams; lists of tools and results of calls that come over them are mended."""
    from_server, to_server = streams
    to_client, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    async def relay() -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with to_client:
                async for message in from_server:
                    await to_client.send(_mended(message))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(relay)
        try:
            yield received, to_server
        finally:
            tasks.cancel_scope.cancel()
            to_client.close()
            received.close()


def _mended(message: SessionMessage | Exception) -> SessionMessage | Exception:
    if isinstance(message, Exception) or not isinstance(message.message, mcp_types.JSONRPCResponse):
        return message
    found = message.message.result
    if isinstance(tools := found.get("tools"), list):
        changed: dict[str, Any] = {
            "tools": [tool for one in cast("list[object]", tools) if (tool := _listed_tool(one))]
        }
    elif found.keys() & {"content", "structuredContent"}:
        changed = {"content": [*_blocks(found.get("content"))], "isError": found.get("isError") not in (False, None)}
        structured = found.get("structuredContent")
        if structured is not None and not isinstance(structured, dict):  # not every revision of the protocol has that
            shown = json.dumps(structured, ensure_ascii=False)
            changed |= {"structuredContent": None, "content": changed["content"] or [{"type": "text", "text": shown}]}
    else:
        return message
    whole = {**found, **changed}
    return SessionMessage(message.message.model_copy(update={"result": whole}), metadata=message.metadata)


def _blocks(content: object) -> Iterator[object]:
    """The parts of a result."""
    parts = cast("list[object]", content) if isinstance(content, list) else [] if content is None else [content]
    for part in parts:
        yield part if _is_known(part) else {"type": "text", "text": _as_text(part)}


def _is_known(part: object) -> bool:
    try:
        _BLOCK.validate_python(part)
    except ValidationError:
        return False
    return isinstance(part, dict) and "type" in part


def _as_text(part: object) -> str:
    if isinstance(part, str):
        return part
    text, kind = (fields(part).get(key) for key in ("text", "type"))
    if isinstance(text, str):
        return text
    shown = json.dumps(part, ensure_ascii=False, default=str)[:MAX_UNKNOWN]
    return f"[a part of unknown kind{f' {kind}' if isinstance(kind, str) else ''}: {shown}]"


def _listed_tool(found: object) -> dict[str, Any] | None:
    """What is read of one tool. None if it has no name."""
    name, about, schema, hints = (
        fields(found).get(key) for key in ("name", "description", "inputSchema", "annotations")
    )
    if not isinstance(name, str) or not name:
        return None
    whole: dict[str, Any] = {"name": name, "inputSchema": schema if _is_of_object(schema) else {"type": "object"}}
    if isinstance(about, str):
        whole["description"] = about
    if isinstance(hints, dict):
        given = cast("dict[str, object]", hints)
        whole["annotations"] = {hint: given[hint] for hint in _HINTS if isinstance(given.get(hint), bool)}
    return whole


def _is_of_object(schema: object) -> bool:
    if not isinstance(schema, dict):
        return False
    part = cast("dict[str, object]", schema)
    properties, required = part.get("properties", {}), part.get("required", [])
    return (
        part.get("type") == "object"
        and isinstance(properties, dict)
        and all(isinstance(each, dict) for each in cast("dict[str, object]", properties).values())
        and isinstance(required, list)
        and all(isinstance(each, str) for each in cast("list[object]", required))
    )
