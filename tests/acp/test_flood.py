"""An agent CLI that sends without an end, or does not read, is held up: the process that executes runs keeps little."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from massgen_mcp.backends.acp.team_server import (
    MAX_CALLS_AT_ONCE,
    MAX_CONNECTIONS,
    MAX_LINE_BYTES,
    TeamServer,
)
from massgen_mcp.backends.base import ToolCall, ToolResultMessage, ToolSpec
from massgen_mcp.json_rpc import MAX_PARTS, read_message

MIB = 1024 * 1024
LOOK = ToolSpec("look", "Look. " * 2000, {"type": "object"})
KEPT_BY_THE_KERNEL = MIB
"""Of one connection, at most, in both directions."""


@asynccontextmanager
async def served(directory: Path) -> AsyncGenerator[tuple[Path, str, asyncio.Event]]:
    """A server, the word of its only session, and what lets its calls end."""
    free = asyncio.Event()

    async def use(call: ToolCall) -> ToolResultMessage:
        await free.wait()
        return ToolResultMessage(call.id, call.name, "seen")

    server = TeamServer()
    await server.open(directory / "team")
    try:
        yield directory / "team", server.let_in([LOOK], use), free
    finally:
        free.set()
        server.close()


async def push(place: Path, begin: bytes, more: bytes, most: int) -> int:
    """How much of it is taken, before the connection is ended or nothing more is taken for a while."""
    reader, writer = await asyncio.open_unix_connection(place)
    del reader
    sent = 0
    try:
        writer.transport.set_write_buffer_limits(high=0)
        writer.write(begin)
        while sent < most:
            writer.write(more)
            with anyio.fail_after(1):
                await writer.drain()
            sent += len(more)
    except (OSError, TimeoutError):
        pass
    finally:
        writer.transport.abort()
    return sent


def asked(number: int, method: str, **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"", b"x" * 65536),
        (b"wrong\n", b"x" * 65536),
        (b"w" * 300 + b"\n", b"x\n" * 32768),
        (None, b"x" * 65536),
        (None, b"[" * 65535 + b"\n"),
        (None, b'{"a":' * 13000 + b"\n"),
        (None, b"\xff\n" * 32768),
        (None, asked(1, "tools/list") * 500),
        (None, asked(1, "ping") * 1000),
        (None, asked(1, "no/such") * 1000),
    ],
    ids=["no word", "a wrong word", "a long word", "no line", "lists", "objects", "no text", "list", "ping", "unknown"],
)
async def test_of_a_flood_of_one_connection_little_is_taken(tmp_path: Path, begin: bytes | None, more: bytes) -> None:
    async with served(tmp_path) as (place, word, _):
        if begin is None:
            begin = f"{word}\n".encode()
        taken = await push(place, begin, more, 64 * MIB)
        assert taken <= MAX_LINE_BYTES + KEPT_BY_THE_KERNEL


async def test_of_a_flood_of_many_connections_little_is_taken_and_another_server_answers_meanwhile(
    tmp_path: Path,
) -> None:
    (tmp_path / "other").mkdir()
    async with served(tmp_path) as (place, word, _), served(tmp_path / "other") as (calm, own, _):
        begin = f"{word}\n".encode()
        floods = [asyncio.create_task(push(place, begin, b"x" * 65536, 15 * MIB)) for _ in range(MAX_CONNECTIONS + 22)]
        reader, writer = await asyncio.open_unix_connection(calm)
        writer.write(f"{own}\n".encode() + asked(1, "ping"))
        assert json.loads(await reader.readline())["id"] == 1
        taken = sum(await asyncio.gather(*floods))
        writer.close()
    assert taken < 2 * MAX_LINE_BYTES + (MAX_CONNECTIONS + 22) * KEPT_BY_THE_KERNEL // 2


async def test_more_connections_than_there_may_be_are_closed(tmp_path: Path) -> None:
    async with served(tmp_path) as (place, word, _):
        made = [await asyncio.open_unix_connection(place) for _ in range(MAX_CONNECTIONS)]
        made[-1][1].write(f"{word}\n".encode() + asked(1, "ping"))
        assert await made[-1][0].readline()
        with anyio.fail_after(10):
            late = await asyncio.open_unix_connection(place)
            assert await late[0].read() == b""
        for _, writer in (*made, late):
            writer.transport.abort()


async def test_more_calls_than_there_may_be_at_once_are_refused_and_the_others_have_results(tmp_path: Path) -> None:
    async with served(tmp_path) as (place, word, free):
        reader, writer = await asyncio.open_unix_connection(place)
        writer.write(f"{word}\n".encode())
        for number in range(MAX_CALLS_AT_ONCE + 3):
            writer.write(asked(number, "tools/call", name="look"))
        refused = [json.loads(await reader.readline()) for _ in range(3)]
        assert [one["error"]["message"] for one in refused] == [f"at most {MAX_CALLS_AT_ONCE} parallel calls"] * 3
        free.set()
        done = [json.loads(await reader.readline()) for _ in range(MAX_CALLS_AT_ONCE)]
        assert {one["result"]["content"][0]["text"] for one in done} == {"seen"}
        writer.write(asked(99, "tools/call", name="look"))
        assert json.loads(await reader.readline())["id"] == 99
        writer.transport.abort()


def test_a_message_of_very_many_small_parts_is_refused_before_it_is_read() -> None:
    for part in (b"{},", b"[],", b"1,", b'"a",'):
        with pytest.raises(ValueError, match="parts"):
            read_message(b"[" + part * (MAX_PARTS + 1) + b"1]")
    assert read_message(b'{"text": "' + b"x" * MIB + b'"}')
