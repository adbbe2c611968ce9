"""Codex gives an optional server one second. On a busy machine ours is there in every one of 20 starts."""

import json
import resource
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.clients.codex import Codex
from tests.clients.model_apis import Asked, ModelApi, model_api
from tests.clients.places import OURS, Place, hold, new_place, say, tokens

STARTS = 20
BARE = [sys.executable, str(Path(__file__).with_name("bare_server.py"))]
HANDSHAKE = "2025-06-18"
LISTS = ("tools/list", "prompts/list", "resources/templates/list")


def _answer(_: Asked) -> str:
    return "fine"


def _server(name: str, command: list[str], environ: dict[str, str]) -> str:
    first, *rest = command
    variables = ", ".join(f"{key} = {json.dumps(value)}" for key, value in environ.items())
    return f"[mcp_servers.{name}]\ncommand = {json.dumps(first)}\nargs = {json.dumps(rest)}\nenv = {{ {variables} }}\n"


@contextmanager
def _busy_machine() -> Generator[None]:
    """Two loops beside everything."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def show() -> None:
    with new_place() as place, model_api(_answer) as api:
        state = {"MASSGEN_MCP_HOME": str(place.home.path)}
        there = {"ours": 0, "bare": 0}
        with _busy_machine():
            for turn in range(STARTS):
                for name, command in (("bare", BARE), ("ours", [str(OURS)])):
                    there[name] += _is_there(place, api, _server(name, command, state), name)
                if (turn + 1) % 5 == 0:
                    load = Path("/proc/loadavg").read_text().split()[0]
                    say(
                        f"  of {turn + 1} starts at load {load}: ours there in {there['ours']}, bare in {there['bare']}"
                    )
        hold(
            there["ours"] == STARTS,
            f"ours was there in {there['ours']} of {STARTS} starts, a bare server in {there['bare']}",
        )
        ours, bare = _cpu_seconds(place, [str(OURS)]), _cpu_seconds(place, BARE)
        told = f"initialize and lists cost {ours:.3f} s of CPU, of a bare server {bare:.3f} s"
        hold(ours < bare / 4, told)


def _is_there(place: Place, api: ModelApi, servers: str, name: str) -> bool:
    """Whether the model has tools of the server in its first step."""
    api.asked.clear()
    Codex(place, api, servers).exec("Hello.")
    first: Any = api.asked[0].body
    found = any(f"mcp__{name}" in tool for tool in api.asked[0].tools)
    if found and name == "ours" and not place.home.work.joinpath("shown").exists():
        place.home.work.joinpath("shown").touch()
        listed = [tool for tool in first["tools"] if f"mcp__{name}" in json.dumps(tool)]
        say(f"  what its model is given of ours: {tokens(json.dumps(listed)):,} tokens")
    return found


def _cpu_seconds(place: Place, command: list[str]) -> float:
    """Of a process that is asked for `initialize` and the lists, and killed then."""
    client = {"name": "codex-mcp-client", "version": "0"}
    opening = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": client}
    messages: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": opening},
        {"method": "notifications/initialized"},
        *({"id": number, "method": method, "params": {}} for number, method in enumerate(LISTS, 1)),
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(
        command, cwd=place.work, env=place.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()
        answered: set[int] = set()
        while len(answered) < 1 + len(LISTS):
            answered.add(json.loads(process.stdout.readline())["id"])
        process.kill()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
