"""One JSON-RPC message a line, over the pipes of a process, with bounds that a server cannot exceed.

A message that is too large is dropped, and the call that it answered fails; a server that floods is given up.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import mcp_types
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
MAX_UNASKED_MESSAGES = 10_000
MAX_UNASKED_BYTES = 256 * 1024 * 1024
"""What a server may send after a message of ours; more is a flood."""
_HEAD_BYTES = 4096
_CHUNK_BYTES = 64 * 1024
_ID = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*[,}]')
_LIST_CHANGED = "notifications/tools/list_changed"

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def framed(
    stdin: ByteSendStream, stdout: ByteReceiveStream, on_end: Callable[[str], Awaitable[None]]
) -> AsyncGenerator[Streams]:
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
