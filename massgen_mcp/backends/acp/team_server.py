"""The team's tools as an MCP server on a Unix socket, and the permission to call these and nothing else.

A call of one is held until somebody answers it.
"""

import asyncio
import json
import os
import secrets
import socket
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from massgen_mcp.backends.base import JsonObject, ToolCall, ToolResultMessage, ToolSpec
from massgen_mcp.backends.frameworks.agent_process import PREFIX, of_server, tool_result
from massgen_mcp.backends.wire_values import clean, clean_object
from massgen_mcp.config.access.acp_agents import TEAM, Sign
from massgen_mcp.json_rpc import fields

MAX_LINE_BYTES = 16 * 1024 * 1024
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
    """Each session has a word of its own, which its connection begins with."""

    def __init__(self) -> None:
        self._offers: dict[str, _Offer] = {}
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def open(self, place: Path) -> None:
        listener = open_listener(place)
        self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=MAX_LINE_BYTES)

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
        self._writers.add(writer)
        held: dict[object, asyncio.Task[None]] = {}
        try:
            word = (await reader.readline()).decode(errors="replace").strip()
            while (offer := self._offers.get(word)) is not None and (line := await reader.readline()):
                _hear(fields(json.loads(line)), offer, writer, held)
        except (OSError, ValueError, RecursionError):
            pass  # what it says cannot be used; its calls are gone with its connection
        finally:
            self._writers.discard(writer)
            for one in held.values():
                one.cancel()
            writer.close()


def _hear(
    message: Mapping[str, Any], offer: _Offer, writer: asyncio.StreamWriter, held: dict[object, asyncio.Task[None]]
) -> None:
    match message:
        case {"id": int() | str() as number, "method": "tools/call", "params": {"name": str(name)} as params}:
            written = json.dumps(clean_object(dict(fields(params.get("arguments")))), ensure_ascii=False)
            call = ToolCall(f"acp_{uuid.uuid4().hex}", clean(name), written)
            held[number] = asyncio.create_task(_use(call, number, offer, writer))
        case {"method": "notifications/cancelled", "params": {"requestId": int() | str() as number}}:
            if number in held:
                held[number].cancel()
        case {"id": _}:
            _send(writer, of_server(message, offer.tools))
        case _:
            pass


async def _use(call: ToolCall, number: int | str, offer: _Offer, writer: asyncio.StreamWriter) -> None:
    result = await offer.use(call)
    _send(writer, {"jsonrpc": "2.0", "id": number, "result": tool_result(result)})


def _send(writer: asyncio.StreamWriter, message: JsonObject) -> None:
    with suppress(OSError, RuntimeError):
        writer.write(f"{json.dumps(message)}\n".encode())


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
