"""A server answers a client's first questions at once, and exactly as it would when it is loaded."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from tests.harness import MODES, SERVER_MODULE, Mode, TempHome, expect_error, spawned

CLIENT = {"name": "x", "version": "0"}
ABOUT = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
SHOWS_APPS = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
INITIALIZED = {"method": "notifications/initialized"}
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "ping")
WHOLE = [sys.executable, "-m", SERVER_MODULE]
LOADED = "tests.server.loaded_server"
"""The server without what answers before it is there."""
NO_SERVER = "raise RuntimeError('this installation is broken')"


def hello(version: str = "2025-11-25", *, name: str = "hello", **more: Any) -> dict[str, Any]:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT, **more}
    return {"id": name, "method": "initialize", "params": params}


def asked(method: str, **params: Any) -> dict[str, Any]:
    return {"id": f"{method} {sorted(params)}", "method": method, "params": params}


CALL = asked("tools/call", name="list_runs", arguments={})
SESSIONS: dict[str, Sequence[dict[str, Any]]] = {
    "handshake": [hello(), INITIALIZED, *map(asked, LISTS), CALL, *map(asked, LISTS)],
    "an older client": [hello("2024-11-05"), INITIALIZED, *map(asked, LISTS), CALL],
    "no handshake": [
        *(asked(method, _meta=ABOUT) for method in ("server/discover", *LISTS)),
        {
            **asked("tools/list", _meta={**ABOUT, "io.modelcontextprotocol/clientCapabilities": SHOWS_APPS}),
            "id": "apps",
        },
    ],
    "unusual": [
        asked("tools/list"),
        asked("ping"),
        hello("1999-01-01"),
        asked("tools/list", cursor="x"),
        asked("tools/list", _meta={**ABOUT, "io.modelcontextprotocol/clientCapabilities": 5}),
        asked("tools/list", _meta={"progressToken": 7}),
        {"id": 7, "method": "no/such/method"},
        {"id": 8, "method": "tools/list", "params": []},
        CALL,
    ],
    "strange capabilities": [
        hello(capabilities={"roots": 5}, name="odd"),
        hello(),
        INITIALIZED,
        asked("tools/list"),
        CALL,
    ],
    "twice": [hello(), hello("2025-06-18", name="again"), INITIALIZED, asked("tools/list"), CALL],
}


async def replies(
    home: TempHome, messages: Sequence[dict[str, Any]], command: Sequence[str] = WHOLE, **environ: str
) -> dict[str, str]:
    """Every reply as it came, by the id of its request; all is sent at once."""
    sent = b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)
    wanted = sum("id" in message for message in messages)
    lines: list[str] = []
    environment = {**home.environ, **environ}
    async with await anyio.open_process(command, cwd=home.work, env=environment, stderr=subprocess.DEVNULL) as server:
        assert server.stdin
        assert server.stdout
        await server.stdin.send(sent)
        text = b""
        with anyio.fail_after(60):
            while text.count(b"\n") < wanted:
                text += await server.stdout.receive()
            await server.stdin.aclose()
            await server.wait()
        lines = text.decode().splitlines()
    return {json.dumps(json.loads(line).get("id")): line for line in lines}


@pytest.mark.parametrize("name", SESSIONS)
async def test_a_server_says_the_same_before_and_after_it_is_loaded(home: TempHome, name: str) -> None:
    first = await replies(home, SESSIONS[name])
    assert first == await replies(home, SESSIONS[name], [home.python, "-m", LOADED])


async def test_first_questions_are_answered_without_the_server_and_calls_are_refused_in_words(home: TempHome) -> None:
    """Where the server behind cannot be imported, it is plain who answered."""
    broken = home.work / "broken"
    broken.mkdir()
    (broken / "anyio.py").write_text(NO_SERVER)
    told = await replies(home, [*SESSIONS["handshake"][:-1]], PYTHONPATH=str(broken))
    assert "serverInfo" in told['"hello"']
    assert len(json.loads(told[json.dumps(asked("tools/list")["id"])])["result"]["tools"]) >= 7
    refused = json.loads(told[json.dumps(CALL["id"])])["result"]
    assert refused["isError"]
    assert refused["content"][0]["text"].startswith("ERROR internal: cannot load the server: RuntimeError: this inst")


async def test_where_there_can_be_no_state_directory_every_call_is_told_why(home: TempHome) -> None:
    told = await replies(home, [hello(), INITIALIZED, *map(asked, LISTS), CALL], MASSGEN_MCP_HOME="here")
    assert "serverInfo" in told['"hello"']
    refused = json.loads(told[json.dumps(CALL["id"])])["result"]
    assert refused["isError"]
    assert refused["content"][0]["text"].startswith("ERROR invalid_arguments: MASSGEN_MCP_HOME must be ")


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_of_every_protocol_hears_why_there_is_no_server(home: TempHome, mode: Mode) -> None:
    async with home.with_variables(MASSGEN_MCP_HOME="here").client(mode) as client:
        code, message = await expect_error(client, "list_runs")
    assert (code, "MASSGEN_MCP_HOME" in message) == ("invalid_arguments", True)


def listening(name: str, **kinds: Any) -> dict[str, Any]:
    return {"id": name, "method": "subscriptions/listen", "params": {"_meta": ABOUT, "notifications": kinds}}


LISTENERS = [
    listening("all", toolsListChanged=True, promptsListChanged=True, resourcesListChanged=True),
    listening("one", resourcesListChanged=True, toolsListChanged=False),
    listening("none"),
    listening("a kind of tomorrow, too", resourcesListChanged=True, somethingElse=True),
    listening("a resource, too", resourcesListChanged=True, resourceSubscriptions=["massgen://configs/scripted"]),
]


async def acknowledgements(home: TempHome, command: Sequence[str] = WHOLE, **environ: str) -> list[str]:
    """Whatever comes before the answer to a call that the server itself answers, sorted."""
    messages = [*LISTENERS, asked("tools/call", _meta=ABOUT, name="list_runs", arguments={})]
    sent = b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)
    variables = (f"{name}={value}" for name, value in environ.items())
    async with spawned(home, "env", *variables, *command) as server:
        assert server.stdin
        assert server.stdout
        text = b""
        await server.stdin.send(sent)
        with anyio.fail_after(60):
            while json.dumps(messages[-1]["id"]) not in text.decode():
                text += await server.stdout.receive()
        return sorted(line for line in text.decode().splitlines() if "acknowledged" in line)


async def test_a_listener_is_acknowledged_once_and_before_the_server_is_there(home: TempHome) -> None:
    """Claude Code asks for no list before that."""
    first = await acknowledgements(home, [home.python, "-m", LOADED])
    assert len(first) == len(LISTENERS)
    assert await acknowledgements(home) == first
    broken = home.work / "broken"
    broken.mkdir()
    (broken / "anyio.py").write_text(NO_SERVER)
    at_once = await acknowledgements(home, PYTHONPATH=str(broken))
    assert at_once == [line for line in first if ", too" not in line], "the rest is for the server to say"


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGINT", "SIGHUP"])
async def test_a_client_may_leave_before_the_server_is_there(home: TempHome, how: str) -> None:
    slow = home.work / "slow"
    slow.mkdir()
    (slow / "anyio.py").write_text("import time; time.sleep(600)")
    command = ["env", f"PYTHONPATH={slow}", sys.executable, "-m", SERVER_MODULE]
    async with spawned(home, *command) as server:
        assert server.stdin
        assert server.stdout
        await server.stdin.send(json.dumps({"jsonrpc": "2.0", **hello()}).encode() + b"\n")
        with anyio.fail_after(30):
            assert b"serverInfo" in await server.stdout.receive()
            if how == "end of input":
                await server.stdin.aclose()
            else:
                os.kill(server.pid, signal.Signals[how])
            assert await server.wait() == 0
