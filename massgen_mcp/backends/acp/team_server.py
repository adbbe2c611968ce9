"""The team's tools as an MCP server on a Unix socket, and the permission to call these and nothing else.

A call of one is held until somebody answers it.
"""

import asyncio
import json
import os
import secrets
import socket
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from massgen_mcp.backends.base import JsonObject, ToolCall, ToolResultMessage, ToolSpec
from massgen_mcp.backends.frameworks.agent_process import PREFIX, of_server, tool_result
from massgen_mcp.backends.wire_values import clean, clean_object
from massgen_mcp.config.access.acp_agents import TEAM, Sign
from massgen_mcp.json_rpc import fields, read_message

MAX_LINE_BYTES = 4 * 1024 * 1024
"""Bytes of one message, and of all unfinished messages together."""
MAX_CONNECTIONS = 128
"""At once; a CLI has one for each session. The next ones are closed."""
MAX_CALLS_AT_ONCE = 32
"""The limit for one connection."""
MAX_WORD_BYTES = 256
WORD_SECONDS = 30.0
"""Until a connection has said its word."""
_READ_BYTES = 64 * 1024
_BUSY = -32000
MAX_CALLS = 10_000
_SERVER_KEYS = ("server", "server_name")


Use = Callable[[ToolCall], Awaitable[ToolResultMessage]]
"""Is told of each call, and has its result when there is one."""


@dataclass(frozen=True, slots=True)
class _Offer:
    """What one session sees."""

    tools: Sequence[ToolSpec]
    use: Use


class TeamServer:
    """Each session has a word of its own, which its connection begins with. All that a CLI can send, or not read, is
    bounded: it may be led by what its model was made to do, and every run of this process would end with its memory.
    """

    def __init__(self) -> None:
        self._offers: dict[str, _Offer] = {}
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._pending = 0
        """Bytes of messages that are not yet whole, of all connections."""

    async def open(self, place: Path) -> None:
        listener = open_listener(place)
        self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=_READ_BYTES)

    def let_in(self, tools: Sequence[ToolSpec], use: Use) -> str:
        """The word by which a session finds these tools."""
        word = secrets.token_urlsafe(16)
        self._offers[word] = _Offer(tools, use)
        return word

    def let_out(self, word: str) -> None:
        self._offers.pop(word, None)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in self._writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._writers) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        self._writers.add(writer)
        try:
            async with asyncio.timeout(WORD_SECONDS):
                word = await reader.readline()
            if len(word) <= MAX_WORD_BYTES:
                await self._serve_session(word.decode(errors="replace").strip(), reader, writer)
        except (OSError, ValueError, RecursionError):
            pass  # what it says cannot be used; its calls are gone with its connection
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _serve_session(self, word: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session: _Session | None = None
        try:
            async with aclosing(self._read_lines(reader)) as lines:
                if word not in self._offers:
                    return
                async for line in lines:
                    if (offer := self._offers.get(word)) is None:
                        return
                    session = session or _Session(offer, writer)
                    await session.hear(fields(read_message(line)))
        finally:
            if session is not None:
                session.end()

    async def _read_lines(self, reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
        """Raises `ValueError` for what is too large."""
        pending = bytearray()
        try:
            while chunk := await reader.read(_READ_BYTES):
                *lines, rest = chunk.split(b"\n")
                for line in lines:
                    whole = bytes(pending + line)
                    self._pending -= len(pending)
                    pending.clear()
                    yield whole
                pending += rest
                self._pending += len(rest)
                if self._pending > MAX_LINE_BYTES:
                    raise ValueError(f"messages larger than {MAX_LINE_BYTES} bytes")
        finally:
            self._pending -= len(pending)


class _Session:
    """Read the requests of one connection. Nothing further is read of it before it has taken what it is answered."""

    def __init__(self, offer: _Offer, writer: asyncio.StreamWriter) -> None:
        self._offer, self._writer = offer, writer
        self._calls: dict[int | str, asyncio.Task[None]] = {}
        self._sending = asyncio.Lock()

    async def hear(self, message: Mapping[str, Any]) -> None:
        match message:
            case {"id": int() | str() as number, "method": "tools/call", "params": {"name": str(name)} as params}:
                if len(self._calls) >= MAX_CALLS_AT_ONCE or number in self._calls:
                    busy: JsonObject = {"code": _BUSY, "message": f"at most {MAX_CALLS_AT_ONCE} parallel calls"}
                    await self._send({"jsonrpc": "2.0", "id": number, "error": busy})
                    return
                written = json.dumps(clean_object(dict(fields(params.get("arguments")))), ensure_ascii=False)
                call = ToolCall(f"acp_{uuid.uuid4().hex}", clean(name), written)
                task = self._calls[number] = asyncio.create_task(self._use(call, number))
                task.add_done_callback(lambda _: self._calls.pop(number, None))
            case {"method": "notifications/cancelled", "params": {"requestId": int() | str() as number}}:
                if number in self._calls:
                    self._calls[number].cancel()
            case {"id": _}:
                await self._send(of_server(message, self._offer.tools))
            case _:
                pass

    def end(self) -> None:
        for call in self._calls.values():
            call.cancel()

    async def _use(self, call: ToolCall, number: int | str) -> None:
        result = await self._offer.use(call)
        with suppress(OSError):
            await self._send({"jsonrpc": "2.0", "id": number, "result": tool_result(result)})

    async def _send(self, message: JsonObject) -> None:
        """Raises `OSError` once the other side is gone: the same error each time, which grows by each raise."""
        async with self._sending:
            self._writer.write(f"{json.dumps(message)}\n".encode())
            await self._writer.drain()


def open_listener(place: Path) -> socket.socket:
    """A socket at `place`, however long its path is. Raises `OSError`."""
    made = socket.socket(socket.AF_UNIX)
    directory = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        short = Path(f"/proc/self/fd/{directory}", place.name)
        made.bind(str(short if short.parent.exists() else place))
    except OSError:
        made.close()
        raise
    finally:
        os.close(directory)
    return made


class Permits:
    """Of one session. `signs`: where its CLI says whose a tool is."""

    def __init__(self, signs: Sequence[Sign]) -> None:
        self._signs = signs
        self._ours: set[str] = set()
        """Ids of calls of the team's tools that were told of."""

    def hear(self, update: Mapping[str, Any]) -> None:
        """A call that the CLI tells of; its request for permission may name nothing but the id."""
        match update:
            case {"sessionUpdate": "tool_call" | "tool_call_update", "toolCallId": str(call_id)}:
                if len(self._ours) < MAX_CALLS and self._is_ours(update):
                    self._ours.add(call_id)
            case _:
                pass

    def decide(self, asked: Mapping[str, Any]) -> JsonObject:
        """The answer to `session/request_permission`."""
        call = fields(asked.get("toolCall"))
        ours = call.get("toolCallId") in self._ours or self._is_ours(call)
        kinds = ("allow_once", "allow_always") if ours else ("reject_once", "reject_always")
        chosen = next((option for kind in kinds for option in _options(asked, kind)), None)
        if chosen is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    def _is_ours(self, call: Mapping[str, Any]) -> bool:
        """By what the CLI itself writes, never by what its model may have written."""
        raw = fields(call.get("rawInput"))
        found: dict[Sign, bool] = {
            "name": str(call.get("name", "")).startswith(PREFIX),
            "id": str(call.get("toolCallId", "")).startswith(f"mcp_{TEAM}_"),
            "server": any(raw.get(key) == TEAM for key in _SERVER_KEYS) and "command" not in raw,
        }
        return any(found[sign] for sign in self._signs)


def _options(asked: Mapping[str, Any], kind: str) -> Iterator[str]:
    options: object = asked.get("options")
    for option in cast("list[object]", options) if isinstance(options, list) else []:
        match option:
            case {"kind": str(found), "optionId": str(option_id)} if found == kind:
                yield option_id
            case _:
                pass
