"""Lines on standard input that are no messages: every one is answered, and the session goes on."""

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from massgen_mcp.certificates import trusted
from tests.harness import PATIENCE_SECONDS, RawServer, TempHome, http_server, raw_server
from tests.server.test_tools import TOOLS

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


HALF = "\\ud800"


def with_half(tool: str, place: str) -> str:
    """A call of the tool with half a character in one place, as JSON."""
    told: dict[str, Any] = {"jsonrpc": "2.0", "id": f"{tool} {place}", "method": "tools/call"}
    arguments: dict[str, Any] = {"name": tool, "arguments": {"run_id": "HALF"}}
    match place:
        case "argument's name":
            arguments["arguments"] = {"HALF": 1}
        case "deep":
            arguments["arguments"] = {"context_paths": [{"path": "/HALF"}]}
        case "metadata":
            arguments["_meta"] = {"HALF": "HALF"}
        case "tool's name":
            arguments["name"] = "HALF"
        case _:
            pass
    return json.dumps({**told, "params": arguments}).replace("HALF", HALF)


PLACES = ("argument", "argument's name", "deep", "metadata", "tool's name")
HALVES = {
    **{f"{tool} {place}": with_half(tool, place) for tool in TOOLS for place in PLACES},
    "a list": '{"jsonrpc":"2.0","id":"a list","method":"prompts/get","params":{"name":"\\udfff"}}',
    "a method": '{"jsonrpc":"2.0","id":"a method","method":"\\udc00\\ud800"}',
}


def is_refused(reply: dict[str, Any]) -> bool:
    text = reply["result"]["content"][0]["text"] if "result" in reply else reply["error"]["message"]
    return "half of a surrogate pair" in text


async def test_half_a_character_anywhere_in_a_request_is_answered_under_its_id(home: TempHome) -> None:
    async with raw_server(home) as server:
        for identity, line in HALVES.items():
            await server.send(line.encode())
            assert is_refused(await server.reply_to(identity)), identity
        whole = await server.ask("tools/call", name="get_status", arguments={"run_id": "\N{PILE OF POO}"})
        assert "ERROR unknown_run" in json.dumps(whole), "both halves are a character"
        assert (await server.ask("ping"))["result"] == {}


async def test_half_a_character_is_answered_over_http_too(home: TempHome) -> None:
    async with (
        http_server(home) as server,
        httpx2.AsyncClient(verify=trusted(), headers=server.credentials, trust_env=False) as http,
    ):
        for identity, line in HALVES.items():
            reply = (await http.post(server.url, content=line, timeout=PATIENCE_SECONDS)).json()
            assert reply["id"] == identity
            assert is_refused(reply), identity


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
