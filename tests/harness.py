"""How tests come in through the front door: a home of their own, real server processes in it, and clients on those.

Nothing here knows what the product does inside. Processes are found and ended by their id (needs `/proc`).
"""

import json
import os
import re
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import anyio
import anyio.abc
import httpx2
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, Implementation, TextContent

from docs.error_codes import codes_of
from massgen_mcp.certificates import trusted
from tests.commands import ROOT as ROOT
from tests.commands import STANDING_IN, python
from tests.planted import PLANTED, SEARCH

SERVER_MODULE = "massgen_mcp.cli.massgen_mcp.main"
RUNNER_MODULE = "massgen_mcp.runs.host.runner"
COMMAND_MODULE = "massgen_mcp.cli.massgen.main"

Mode = Literal["auto", "legacy", "2026-07-28"]
MODES: tuple[Mode, ...] = ("auto", "legacy", "2026-07-28")

T = TypeVar("T")

POLL_SECONDS = 0.02
PATIENCE_SECONDS = 45.0
"""How long what must come is waited for: so long that a busy machine is no reason to fail, and not so long
as a call that waits (50 s), which is not to be waited for."""
RUNNER_IDLE_SECONDS = "0.5"


# -- a place for everything that a test starts ------------------------------------------------------------------------


@dataclass(frozen=True)
class TempHome:
    """A state directory, and a working directory beside it. `path` need not exist yet."""

    path: Path
    work: Path
    extra: dict[str, str] = field(default_factory=dict[str, str])
    """Variables of this test's own, such as keys."""
    starts_anew: bool = False
    """Start every program as a user does, at what that costs."""

    @property
    def python(self) -> str:
        """The interpreter for programs of ours that are started here; see `commands.python`."""
        return sys.executable if self.starts_anew else python()

    @property
    def environ(self) -> dict[str, str]:
        """Our own environment without anybody's keys and addresses, pointing at this home."""
        foreign = re.compile(r"MASSGEN_|OLLAMA_HOST$|NO_COLOR$|FORCE_COLOR$|.*_(API_KEY|BASE_URL|OAUTH_TOKEN)$")
        inherited = {name: value for name, value in os.environ.items() if not foreign.match(name)}
        return {
            **inherited,
            "MASSGEN_MCP_HOME": str(self.path),
            "MASSGEN_MCP_RUNNER_IDLE_SECONDS": RUNNER_IDLE_SECONDS,
            "MASSGEN_CONFIG_HOME": str(self.own_configs),
            "CLAUDE_CONFIG_DIR": str(self.work / "no-such-login"),
            **PLANTED,
            **self.extra,
        }

    @property
    def runs(self) -> list[Path]:
        """The directories of its runs."""
        return sorted((self.path / "runs").glob("*"))

    @property
    def own_configs(self) -> Path:
        """The user's own directory of configs, from which an agent may take any."""
        return self.work / ".config" / "massgen"

    def run_directory(self, run_id: str) -> Path:
        return self.path / "runs" / run_id

    def with_variables(self, **variables: str) -> "TempHome":
        """The same home as somebody with these variables sees it. Keys among them are searched for in the end."""
        SEARCH.add(variables)
        return replace(self, extra={**self.extra, **variables})

    def config(self, name: str, *agents: dict[str, Any], **settings: Any) -> str:
        """Write a config that the user keeps; returns its path. JSON is YAML, but for the escapes of characters."""
        self.own_configs.mkdir(parents=True, exist_ok=True)
        path = self.own_configs / f"{name}.yaml"
        path.write_text(json.dumps({"agents": agents, **settings}, indent=1, ensure_ascii=False), encoding="utf-8")
        return str(path)

    def processes(self, module: str | None = None) -> list[int]:
        """Ids of the processes that work in this home, of all or of one module, ours excepted."""
        return [pid for pid, arguments in self._living() if module is None or module in arguments]

    def _living(self) -> Iterator[tuple[int, list[str]]]:
        """Looks at all processes of the machine, and that often: by the calls that cost least."""
        mark = f"\0MASSGEN_MCP_HOME={self.path}\0".encode()
        for name in os.listdir("/proc"):  # noqa: PTH208 - a Path for each takes as long as all the rest
            if not name.isdigit() or int(name) == os.getpid():
                continue
            with suppress(OSError):  # copies show much room that they do not need: none of it is looked at
                if mark in b"\0%b\0" % _read_of_process(name, "environ").partition(b"\0\0")[0]:
                    arguments = _read_of_process(name, "cmdline").rstrip(b"\0").decode(errors="replace").split("\0")
                    if STANDING_IN not in arguments[1:2]:
                        yield int(name), arguments

    def close(self) -> None:
        """End whatever is still there, politely first."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            living = self.processes()
            for pid in living:
                end(pid, sign)
            if not living or poll_until(lambda: not self.processes(), 5, or_fail=False):
                return

    @asynccontextmanager
    async def client(self, mode: Mode = "auto", *, called: str = "test", **abilities: Any) -> AsyncGenerator[Client]:
        """A client of the SDK on a server process of its own, over standard input and output. `called` is what it calls
        itself, `abilities` are what `mcp.Client` takes: callbacks, extensions.
        """
        server = StdioServerParameters(command=self.python, args=["-m", SERVER_MODULE], env=self.environ)
        with (self.work / "server.log").open("a") as log:
            info = Implementation(name=called, version="1")
            async with Client(stdio_client(server, errlog=log), mode=mode, client_info=info, **abilities) as client:
                yield client


def _read_of_process(pid: str, name: str) -> bytes:
    """Return the file `name` of a process, at least up to the first part of it without a text. Raises `OSError`."""
    size, data = 1 << 15, b""
    descriptor = os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
    try:
        while chunk := os.read(descriptor, size):
            data += chunk
            if len(chunk) < size or b"\0\0" in chunk:
                break
    finally:
        os.close(descriptor)
    return data


@pytest.fixture
def home(tmp_path: Path) -> Iterator[TempHome]:
    """A home for one test; no process outlives the test in it."""
    work = tmp_path / "work"
    work.mkdir()
    place = TempHome(tmp_path / "home", work)
    yield place
    place.close()


def after(gate: Path) -> dict[str, Any]:
    """Part of a step of a scripted agent: it is taken when there is this file."""
    return {"after_file": str(gate)}


def agent(agent_id: str, *steps: dict[str, Any], **backend: Any) -> dict[str, Any]:
    """A scripted agent of a config."""
    return {"id": agent_id, "backend": {"type": "scripted", "script": list(steps), **backend}}


def connections(pid: int) -> int:
    """How many sockets a process has open."""
    found = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found += str(descriptor.readlink()).startswith("socket:")
    return found


def end(pid: int, sign: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, sign)


@asynccontextmanager
async def spawned(home: TempHome, *command: str, **pipes: Any) -> AsyncGenerator[anyio.abc.Process]:
    """A process in this home, gone at the end of the block whatever happens in it."""
    async with await anyio.open_process(command, env=home.environ, **pipes) as process:
        try:
            yield process
        finally:
            if process.returncode is None:
                end(process.pid, signal.SIGKILL)  # `kill` polls, and may take the exit code from asyncio's watcher


# -- waiting ----------------------------------------------------------------------------------------------------------


async def wait_until(predicate: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
    """The first true value of `predicate`; fails after `seconds`."""
    deadline = anyio.current_time() + seconds
    while not (value := predicate()):
        if anyio.current_time() > deadline:
            pytest.fail(f"it did not come to pass in {seconds:g} s")
        await anyio.sleep(POLL_SECONDS)
    return value


def poll_until(predicate: Callable[[], T], seconds: float = PATIENCE_SECONDS, *, or_fail: bool = True) -> T:
    """`wait_until` for tests without an event loop; with `or_fail` False the last value is returned instead."""
    deadline = time.monotonic() + seconds
    while not (value := predicate()):
        if time.monotonic() > deadline:
            if or_fail:
                pytest.fail(f"it did not come to pass in {seconds:g} s")
            break
        time.sleep(POLL_SECONDS)
    return value


def events_of(run: Path) -> list[dict[str, Any]]:
    """The whole events in a run's journal."""
    journal = run / "events.jsonl"
    if not journal.exists():
        return []
    whole, _, _ = journal.read_bytes().rpartition(b"\n")
    return [json.loads(line)["event"] for line in whole.splitlines()]


def happened(run: Path, kind: str) -> bool:
    return any(event["type"] == kind for event in events_of(run))


# -- tools ------------------------------------------------------------------------------------------------------------


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured result of a call that must succeed."""
    reply = await client.call_tool(tool, arguments)
    SEARCH.look(f"reply of {tool}", reply.model_dump_json())
    assert not reply.is_error, text_of(reply)
    assert reply.structured_content is not None
    return cast("dict[str, Any]", reply.structured_content)


async def whole_answer(client: Client, run_id: str, **view: Any) -> str:
    """What `get_result` gives, joined from its pages."""
    pages, offset = list[str](), 0
    while True:
        page = await call(client, "get_result", run_id=run_id, offset=offset, **view)
        pages.append(page["answer"])
        if "next_offset" not in page:
            return "".join(pages)
        offset = page["next_offset"]


async def expect_error(client: Client, tool: str, **arguments: Any) -> tuple[str, str]:
    """Code and message of a call that must be refused. An error is told in text alone, for clients that drop flags."""
    reply = await client.call_tool(tool, arguments)
    SEARCH.look(f"error of {tool}", text_of(reply))
    assert reply.is_error, f"not refused: {reply.structured_content}"
    assert reply.structured_content is None
    told = re.fullmatch(r"ERROR ([a-z_]+): (.+)", text_of(reply), re.DOTALL)
    assert told, text_of(reply)[:500]
    assert told.group(1) in codes_of(tool), f"docs/error_codes.py does not say that {tool} answers {told.group(1)}"
    return told.group(1), told.group(2)


def text_of(reply: CallToolResult) -> str:
    return "\n".join(block.text for block in reply.content if isinstance(block, TextContent))


# -- a server without a client --------------------------------------------------------------------------------------


class RawServer:
    """A server process whose bytes a test sends and reads itself, with the handshake of 2025-06-18."""

    def __init__(self, process: anyio.abc.Process) -> None:
        assert process.stdin
        assert process.stdout
        self.process = process
        self.stdin = process.stdin
        self._stdout = BufferedByteReceiveStream(process.stdout)
        self.lines: list[str] = []
        """Everything that came on standard output so far."""
        self._id = 0

    async def send(self, line: bytes) -> None:
        await self.stdin.send(line + b"\n")

    async def request(self, method: str, **params: Any) -> int:
        """Send a request; returns its id."""
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        await self.send(json.dumps(message).encode())
        return self._id

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and read up to its reply."""
        return await self.reply_to(await self.request(method, **params))

    async def reply_to(self, wanted: int | str | None) -> dict[str, Any]:
        """None: the next message without an id of ours, which is the answer to what could not be read."""
        with anyio.fail_after(PATIENCE_SECONDS):
            while True:
                line = (await self._stdout.receive_until(b"\n", 1 << 24)).decode()
                self.lines.append(line)
                message = json.loads(line)
                if message.get("id") == wanted:
                    return message

    async def replies(self, count: int, seconds: float) -> AsyncGenerator[dict[str, Any]]:
        """The next replies, to whatever was asked, as they come."""
        with anyio.fail_after(seconds):
            while count:
                message = json.loads(await self._stdout.receive_until(b"\n", 1 << 24))
                if "id" in message:
                    count -= 1
                    yield message

    async def greet(self) -> None:
        info = {"name": "raw", "version": "1"}
        await self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
        await self.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')

    async def leave(self) -> int:
        """Its exit code, once it has gone by itself; what it still said is in `lines`."""
        with anyio.fail_after(PATIENCE_SECONDS):
            rest = b""
            with suppress(anyio.EndOfStream):
                while True:
                    rest += await self._stdout.receive()
            self.lines += rest.decode().splitlines()
            return await self.process.wait()


@asynccontextmanager
async def raw_server(home: TempHome, *options: str, module: str = SERVER_MODULE) -> AsyncGenerator[RawServer]:
    """`options` are for the interpreter."""
    command = [home.python, *options, "-m", module]
    with (home.work / "server.log").open("ab") as log:
        async with spawned(home, *command, stderr=log) as process:
            server = RawServer(process)
            await server.greet()
            yield server


# -- a server over HTTP -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HttpServer:
    """`url` ends in /mcp. `token_file` is the one that the server names on standard error."""

    url: str
    token_file: Path
    process: anyio.abc.Process

    @property
    def authority(self) -> str:
        return self.url.removeprefix("http://").removesuffix("/mcp")

    @property
    def credentials(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token_file.read_text().strip()}"}

    @asynccontextmanager
    async def client(self, mode: Mode, **abilities: Any) -> AsyncGenerator[Client]:
        async with (
            httpx2.AsyncClient(verify=trusted(), headers=self.credentials, trust_env=False, timeout=60) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode, **abilities) as client,
        ):
            yield client


@asynccontextmanager
async def http_server(home: TempHome, *options: str, module: str = SERVER_MODULE) -> AsyncGenerator[HttpServer]:
    command = [home.python, "-m", module, "--transport", "http", "--port", "0", *options]
    log = home.work / "http.log"
    with log.open("ab") as output:
        async with spawned(home, *command, stderr=output) as process:
            told = await wait_until(lambda: re.search(r"(http://\S+/mcp), bearer token in (.+)\n", log.read_text()))
            assert told
            yield HttpServer(told.group(1), Path(told.group(2)), process)


def without_escapes(text: str) -> bool:
    """Whether a terminal would take every character of `text` as text."""
    return re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text) is None


def variables(environ: Mapping[str, str]) -> list[str]:
    """As `-e` arguments of the Inspector."""
    return [part for name, value in environ.items() for part in ("-e", f"{name}={value}")]
