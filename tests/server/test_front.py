"""A server that was started before answers a client's first questions at once, and exactly as it would later."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

import massgen_mcp
from tests.harness import SERVER_MODULE, TempHome, spawned, wait_until

CLIENT = {"name": "x", "version": "0"}
ABOUT = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
SHOWS_APPS = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
INITIALIZED = {"method": "notifications/initialized"}
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "ping")
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


async def replies(home: TempHome, messages: Sequence[dict[str, Any]], **environ: str) -> dict[str, str]:
    """Every reply as it came, by the id of its request; all is sent at once."""
    sent = b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)
    wanted = sum("id" in message for message in messages)
    lines: list[str] = []
    environment = {**home.environ, **environ}
    command = [sys.executable, "-m", SERVER_MODULE]
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


def snapshots(home: TempHome) -> list[Path]:
    return sorted((home.path / "cache").glob("start-*.json"))


async def started_before(home: TempHome, **environ: str) -> None:
    """A server was here, and left what it says first."""
    known = len(snapshots(home))
    variables = (f"{name}={value}" for name, value in environ.items())
    async with spawned(home, "env", *variables, sys.executable, "-m", SERVER_MODULE, cwd=home.work):
        await wait_until(lambda: len(snapshots(home)) > known, 30)


@pytest.mark.parametrize("name", SESSIONS)
async def test_a_server_says_the_same_at_its_first_and_at_a_later_start(home: TempHome, name: str) -> None:
    other = TempHome(home.path.with_name("other"), home.work)
    await started_before(home)
    later = await replies(home, SESSIONS[name])
    assert later == await replies(other, SESSIONS[name])


async def test_first_questions_are_answered_without_the_server_and_calls_are_refused_in_words(home: TempHome) -> None:
    """Where the server behind cannot be imported, it is plain who answered."""
    await started_before(home)
    broken = home.work / "broken"
    broken.mkdir()
    (broken / "anyio.py").write_text(NO_SERVER)
    told = await replies(home, [*SESSIONS["handshake"][:-1]], PYTHONPATH=str(broken))
    assert "serverInfo" in told['"hello"']
    assert len(json.loads(told[json.dumps(asked("tools/list")["id"])])["result"]["tools"]) >= 7
    refused = json.loads(told[json.dumps(CALL["id"])])["result"]
    assert refused["isError"]
    assert refused["content"][0]["text"].startswith(
        "ERROR internal: the server cannot be loaded: RuntimeError: this inst"
    )


def listening(name: str, **kinds: Any) -> dict[str, Any]:
    return {"id": name, "method": "subscriptions/listen", "params": {"_meta": ABOUT, "notifications": kinds}}


LISTENERS = [
    listening("all", toolsListChanged=True, promptsListChanged=True, resourcesListChanged=True),
    listening("one", resourcesListChanged=True, toolsListChanged=False),
    listening("none"),
    listening("a kind of tomorrow, too", resourcesListChanged=True, somethingElse=True),
    listening("a resource, too", resourcesListChanged=True, resourceSubscriptions=["massgen://configs/scripted"]),
]


async def acknowledgements(home: TempHome, **environ: str) -> list[str]:
    """Whatever comes before the answer to a call that the server itself answers, sorted. A snapshot is there then."""
    messages = [*LISTENERS, asked("tools/call", _meta=ABOUT, name="list_runs", arguments={})]
    sent = b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)
    variables = (f"{name}={value}" for name, value in environ.items())
    async with spawned(home, "env", *variables, sys.executable, "-m", SERVER_MODULE) as server:
        assert server.stdin
        assert server.stdout
        text = b""
        await server.stdin.send(sent)
        with anyio.fail_after(60):
            while json.dumps(messages[-1]["id"]) not in text.decode():
                text += await server.stdout.receive()
        await wait_until(lambda: snapshots(home))
        return sorted(line for line in text.decode().splitlines() if "acknowledged" in line)


async def test_a_listener_is_acknowledged_once_and_before_the_server_is_there(home: TempHome) -> None:
    """Claude Code asks for no list before that."""
    first = await acknowledgements(home)
    assert len(first) == len(LISTENERS)
    assert await acknowledgements(home) == first
    broken = home.work / "broken"
    broken.mkdir()
    (broken / "anyio.py").write_text(NO_SERVER)
    at_once = await acknowledgements(home, PYTHONPATH=str(broken))
    assert at_once == [line for line in first if ", too" not in line], "the rest is for the server to say"


async def test_a_changed_tool_is_seen_at_the_very_next_start(home: TempHome) -> None:
    package = home.work / "changed" / "massgen_mcp"
    source = Path(massgen_mcp.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(source.parent / "configs", package / "configs")
    environ = {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    await started_before(home, **environ)
    questions = [asked("tools/list", _meta=ABOUT)]
    (before,) = (await replies(home, questions, **environ)).values()
    tools = package / "server" / "tools.py"
    tools.write_text(tools.read_text().replace('"""List runs, newest first."""', '"""List all runs."""'))
    (after,) = (await replies(home, questions, **environ)).values()
    assert "List runs, newest first." in before
    assert after == before.replace("List runs, newest first.", "List all runs.")


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGINT", "SIGHUP"])
async def test_a_client_may_leave_before_the_server_is_there(home: TempHome, how: str) -> None:
    await started_before(home)
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


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"2025-11-25": {}}'])
async def test_a_snapshot_that_is_no_good_costs_nothing_but_time(home: TempHome, content: bytes) -> None:
    await started_before(home)
    snapshots(home)[0].write_bytes(content)
    told = await replies(home, SESSIONS["handshake"])
    assert "serverInfo" in told['"hello"']
    assert len(told) == sum("id" in message for message in SESSIONS["handshake"]) - len(LISTS)
