"""Serves MCP over standard input and output, and leaves at once: on end of input, on signals, and with its parent.

Nothing has to be put in order first: a server holds no run state, what it acknowledged is on disk, and runs are not its
to end. A line that is no message is answered, and none is held in memory that is too long.
"""

import io
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self, cast

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCResponse
from pydantic import ValidationError
from typing_extensions import Buffer

from massgen_mcp.mcp_streams import ReadStream, WriteStream
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.server.front import ACKNOWLEDGED, SUBSCRIPTION_ID, Front
from massgen_mcp.server.transport import MAX_LINE_BYTES, answer_to_half_characters, leave, leave_with_parent

PIECE_BYTES = 64 * 1024
_END_BYTES = 200
_ID_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15}|"[\w-]{1,64}")')
_ID_LAST = re.compile(rb'"id"\s*:\s*(\d{1,15}|"[\w-]{1,64}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
_TOO_LONG = f"a line has more than {MAX_LINE_BYTES} bytes"


async def serve_stdio(server: MassgenServer, front: Front | None = None) -> None:
    """Return when the client closed standard input. On a signal, or when the client is gone, the process ends here.

    `front` has spoken for the server before: it goes on from there.
    """
    unread = front.unread if front else b""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_leave_on_signal, signals)
            tasks.start_soon(leave_with_parent, front.parent if front else os.getppid())
            async with stdio_server(stdin=anyio.wrap_file(_Lines(_own_input(unread)))) as (incoming, outgoing):
                to_server, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
                tasks.start_soon(_answer_what_is_no_message, incoming, to_server, outgoing.clone())
                await server.serve(messages, _Answered(outgoing, front) if front else outgoing)
            tasks.cancel_scope.cancel()


class _Answered:
    """A stream without what `front` has said before."""

    def __init__(self, stream: WriteStream[SessionMessage], front: Front) -> None:
        self._stream = stream
        self._handshake_id = front.handshake_id
        self._listeners: set[object] = set(front.acknowledged)

    async def send(self, item: SessionMessage, /) -> None:
        if isinstance(item.message, JSONRPCResponse) and item.message.id == self._handshake_id:
            self._handshake_id = None
        elif (listener := _acknowledged(item)) in self._listeners:
            self._listeners.discard(listener)
        else:
            await self._stream.send(item)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(exc_type, exc_val, exc_tb)


def _acknowledged(item: SessionMessage) -> object:
    """The listener to whom a message says that it is heard; None for any other message."""
    if not isinstance(item.message, JSONRPCNotification) or item.message.method != ACKNOWLEDGED:
        return None
    return cast("dict[str, object]", (item.message.params or {}).get("_meta", {})).get(SUBSCRIPTION_ID)


class _Input(io.FileIO):
    """A file before whose bytes stand those that were read from it already."""

    def __init__(self, descriptor: int, unread: bytes) -> None:
        super().__init__(descriptor, closefd=False)
        self._unread = unread

    def readinto(self, buffer: Buffer, /) -> int | None:
        if not self._unread:
            return super().readinto(buffer)
        view = memoryview(buffer).cast("B")
        now, self._unread = self._unread[: len(view)], self._unread[len(view) :]
        view[: len(now)] = now
        return len(now)


def _own_input(unread: bytes) -> io.BufferedReader:
    """Standard input for us alone: children, and whatever else reads it, find it empty."""
    own = os.dup(sys.stdin.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    # It stays open: a thread may still read from it when we leave.
    return io.BufferedReader(_Input(own, unread), PIECE_BYTES)


class _Lines(io.TextIOWrapper):
    """The lines of a byte stream. One that is too long is passed over; `_TOO_LONG` stands in for it, and the id of the
    request that it seems to be, as JSON.
    """

    def __init__(self, stream: io.BufferedReader) -> None:
        super().__init__(stream, encoding="utf-8", errors="replace")
        self._stream = stream

    def readline(self, size: int = -1, /) -> str:  # noqa: ARG002 - the file's signature
        line = self._stream.readline(MAX_LINE_BYTES + 1)
        if len(line) <= MAX_LINE_BYTES:
            return line.decode(errors="replace")
        head, tail = line[:_END_BYTES], b""
        while line and not line.endswith(b"\n"):
            line = self._stream.readline(PIECE_BYTES)
            tail = (tail + line)[-_END_BYTES:]
        found = _ID_FIRST.match(head) or _ID_LAST.search(tail)
        return f"{_TOO_LONG} {found[1].decode() if found else 'null'}"


async def _answer_what_is_no_message(
    incoming: ReadStream[SessionMessage | Exception],
    to_server: WriteStream[SessionMessage | Exception],
    outgoing: WriteStream[SessionMessage],
) -> None:
    """Pass messages on. The SDK would drop the rest without a word, and the client would wait."""
    async with incoming, to_server, outgoing:
        async for item in incoming:
            if isinstance(item, SessionMessage):
                await to_server.send(item)
            else:
                half = answer_to_half_characters((_input_of(item) or "").encode(errors="surrogatepass"))
                error = JSONRPCError(jsonrpc="2.0", id=_request_of(item), error=_error_data(item))
                await outgoing.send(SessionMessage(half or error))


def _request_of(problem: Exception) -> int | str | None:
    """The id of the request that a line which was too long seems to be; without an answer its client would wait."""
    line = _input_of(problem)
    if line is None or not line.startswith(_TOO_LONG):
        return None
    return json.loads(line.removeprefix(_TOO_LONG))


def _input_of(problem: Exception) -> str | None:
    line = problem.errors(include_url=False)[0]["input"] if isinstance(problem, ValidationError) else None
    return line if isinstance(line, str) else None


def _error_data(problem: Exception) -> ErrorData:
    if isinstance(problem, ValidationError):
        detail = problem.errors(include_url=False)[0]
        if (_input_of(problem) or "").startswith(_TOO_LONG):
            return ErrorData(code=INVALID_REQUEST, message=_TOO_LONG)
        if detail["type"] == "json_invalid":
            return ErrorData(code=PARSE_ERROR, message="a line is not JSON")
    return ErrorData(code=INVALID_REQUEST, message="a line is not a JSON-RPC message")


async def _leave_on_signal(signals: AsyncIterator[signal.Signals]) -> None:
    async for _ in signals:
        leave()
