"""Lines on standard input that are no messages: every one is answered, and the session goes on."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.harness import RawServer, TempHome, raw_server

LIMIT = 12 * 1024 * 1024


async def refusal_of(server: RawServer, line: bytes) -> int:
    """The code of the error that answers a line, which no id could be found for."""
    await server.send(line)
    reply = await server.reply_to(None)
    return reply["error"]["code"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"this is not JSON", -32700),
        (b"\xff\xfe\x00", -32700),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc": "2.0"}', -32600),
        (b"[]", -32600),
        (b"x" * (LIMIT + 1), -32600),
    ],
    ids=["no JSON", "no UTF-8", "nested too deeply", "no message", "batch", "too long"],
)
async def test_a_line_that_is_no_message_is_answered_and_the_session_goes_on(
    home: TempHome, line: bytes, code: int
) -> None:
    async with raw_server(home) as server:
        assert await refusal_of(server, line) == code
        assert (await server.ask("ping"))["result"] == {}


async def test_a_line_of_any_length_is_skipped_without_being_held_in_memory(home: TempHome) -> None:
    async with raw_server(home) as server:
        await server.ask("tools/list")
        before = peak_of(server)
        for _ in range(64):
            await server.stdin.send(b"x" * (1 << 20))
        assert await refusal_of(server, b"") == -32600
        assert peak_of(server) - before < 32 * 1024
        assert (await server.ask("ping"))["result"] == {}


def peak_of(server: RawServer) -> int:
    """KiB of memory that it held at most."""
    told = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{server.process.pid}/status").read_text())
    assert told
    return int(told.group(1))


@pytest.mark.parametrize("size", [20, LIMIT + 1])
async def test_an_unfinished_line_at_the_end_of_input_ends_the_server(home: TempHome, size: int) -> None:
    async with raw_server(home) as server:
        await server.stdin.send(b"x" * size)
        await server.stdin.aclose()
        assert await server.leave() == 0


@pytest.mark.parametrize("order", ["first", "last", "named"])
async def test_a_request_on_a_line_that_is_too_long_is_answered_under_its_id(home: TempHome, order: str) -> None:
    call = {"method": "tools/call", "params": {"name": "start_run", "arguments": {"question": "x" * LIMIT}}}
    request: dict[str, Any] = {
        "first": {"jsonrpc": "2.0", "id": 7, **call},
        "last": {**call, "jsonrpc": "2.0", "id": 7},
        "named": {**call, "jsonrpc": "2.0", "id": "seven-7"},
    }[order]
    async with raw_server(home) as server:
        await server.send(json.dumps(request).encode())
        reply = await server.reply_to(request["id"])
        assert reply["error"]["code"] == -32600
        assert f"more than {LIMIT} bytes" in reply["error"]["message"]
