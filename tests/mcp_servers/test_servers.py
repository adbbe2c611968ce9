"""Where MCP servers run, what they are given, and how they are reached, in whole runs."""

import gzip
import json
import shutil
import threading
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from massgen_mcp.config.models.config import StdioServer
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import Event
from massgen_mcp.events.record import LogRecord
from massgen_mcp.redaction import Redactor
from massgen_mcp.request.trust import read_file, remember
from massgen_mcp.sandbox import LevelName, SandboxChoice
from massgen_mcp.sandbox.levels import interpreter
from massgen_mcp.sandbox.policy import SCRATCH
from massgen_mcp.tools.base import Tool
from massgen_mcp.tools.mcp_servers import ServerDirectories, ServerHost, Toolbox
from massgen_mcp.tools.mcp_servers.results import ToolResults
from massgen_mcp.tools.mcp_servers.toolbox import plain_schema
from tests.commands import run_command
from tests.cut_off import check_every_cut
from tests.harness import COMMAND_MODULE, TempHome, events_of, expect_error, home
from tests.harness import agent as team_agent
from tests.harness import call as mcp_call
from tests.mcp_servers.double import BOMBS
from tests.mcp_servers.test_hostile import DOUBLE, agent, call, config, results, server, worked
from tests.needs import needs, node, npm_tool
from tests.sandbox.table import LEVELS
from tests.stage import perform
from tests.teams import run_team

__all__ = ["home"]

SECRET = "sk-4711-of-the-person-0815"
needs_bubblewrap = needs("bwrap")
needs_sandbox = pytest.mark.skipif(not LEVELS, reason="this machine has no sandbox")


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A state directory in which the levels of this machine are known after the first run."""
    return {"MASSGEN_MCP_HOME": str(tmp_path_factory.mktemp("home")), "GIVEN": SECRET, "OTHER": "other"}


def sandboxed(behaviour: str, **settings: Any) -> dict[str, Any]:
    return server(behaviour, **{"sandbox": True, **settings})


# -- what a server is given -------------------------------------------------------------------------------------------


@needs_bubblewrap
async def test_in_the_sandbox_a_server_has_its_workspace_and_nothing_of_a_person(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    servers = {"odd": sandboxed("telling")}
    looked_at = [
        "/workspace",
        str(Path.home() / ".ssh"),
        str(Path.cwd() / "pyproject.toml"),
        environ["MASSGEN_MCP_HOME"],
    ]
    made = config(agent(servers, call("look"), call("ping", paths=looked_at)))
    ended = await run_team(tmp_path, made, environ=environ)

    told, seen = worked(ended)
    about = json.loads(told.result)
    assert about["cwd"] == "/workspace"
    assert about["environ"].keys() >= {"PATH", "HOME", "LANG"}
    assert not about["environ"].keys() & environ.keys()
    assert not [name for name in about["environ"] if any(part in name for part in ("KEY", "TOKEN", "SECRET"))]
    assert json.loads(seen.result) == dict(zip(looked_at, [True, False, False, False], strict=True))
    assert (ended.directory.workspace_of("agent_a") / "written.txt").exists()


@needs_bubblewrap
async def test_in_the_sandbox_a_program_below_tmp_is_there_and_nothing_else_of_that(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    with TemporaryDirectory(dir=SCRATCH) as place:
        program = shutil.copy(DOUBLE, place)
        (Path(place) / "private").touch()
        looked_at = [program, f"{place}/private", environ["MASSGEN_MCP_HOME"]]
        servers = {"odd": sandboxed("telling", args=["-I", "-S", program, "telling"])}
        ended = await run_team(tmp_path, config(agent(servers, call("ping", paths=looked_at))), environ=environ)

    assert json.loads(worked(ended)[0].result) == dict(zip(looked_at, [True, False, False], strict=True))


def laid_out(place: Path, double: Path) -> dict[str, str]:
    """Commands that are links, as machines have them; those that are scripts of ours run `double`."""
    python = Path(shutil.which("python3", path="/usr/bin") or interpreter())
    package = place / "lib" / "node_modules" / "odd"
    package.mkdir(parents=True)
    run = f"import runpy\nrunpy.run_path({str(double)!r}, None, '__main__')"
    (package / "cli.py").write_text(f"#!{interpreter()} -IS\n{run}\n")
    (package / "cli.py").chmod(0o755)
    (place / "bin").mkdir()
    links = {"tool": "../lib/node_modules/odd/cli.py", "alias": "tool", "python": interpreter(), "again": "python"}
    for name, target in links.items():
        (place / "bin" / name).symlink_to(target)
    return {
        "npx as NodeSource lays it out": str(place / "bin" / "tool"),
        "a link to a link": str(place / "bin" / "alias"),
        "a link to a program elsewhere": str(place / "bin" / "python"),
        "a link to that": str(place / "bin" / "again"),
        "a link in /usr": str(python),
        "a link below a link": f"/bin/{python.name}",
    }


@pytest.mark.parametrize("level", LEVELS)
async def test_in_the_sandbox_a_command_that_is_a_link_starts(
    tmp_path: Path, level: LevelName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("massgen_mcp.sandbox.levels.BY_ITSELF", (level,))
    with TemporaryDirectory(dir="/var/tmp") as place:  # below /tmp a command has its own, and the clone may be there
        double = Path(shutil.copy(DOUBLE, place))
        servers: dict[str, Any] = {}
        for number, path in enumerate(laid_out(Path(place), double).values()):
            args = ["server"] if path.endswith(("tool", "alias")) else ["-I", "-S", str(double), "server"]
            servers[f"s{number}"] = sandboxed("server", command=path, args=args, readable=[str(double)])
        made = config(agent(servers, call("s5__ping")))
        ended = await run_team(tmp_path, made, environ={"MASSGEN_MCP_HOME": str(tmp_path / "home")})
    assert [event.result for event in worked(ended)] == ["ping {} number 1"]


@pytest.mark.parametrize("where", [pytest.param(True, marks=needs_sandbox), False], ids=["sandbox", "bare"])
async def test_a_server_is_given_the_variables_that_it_names_and_cannot_tell_them(
    tmp_path: Path, environ: dict[str, str], where: bool
) -> None:
    servers = {"odd": sandboxed("telling", sandbox=where, env={"KEY": "of ${GIVEN}", "PLAIN": "plain"})}
    made = config(agent(servers, call("look"), call("look", padding=50_000)))
    ended = await run_team(tmp_path, made, environ=environ)

    told, long = worked(ended)
    assert "the whole text is in tool_results/look-" in long.result
    assert '"PLAIN": "plain"' in told.result
    assert '"KEY": "of ' in told.result
    assert "OTHER" not in told.result
    kept = [file for file in ended.directory.path.rglob("*") if file.is_file()]
    assert not [file for file in kept if SECRET.encode() in file.read_bytes()]


async def test_a_variable_that_is_not_set_is_named_in_the_log(tmp_path: Path) -> None:
    servers = {"odd": server("server", env={"KEY": "${NOWHERE}"})}
    ended = await run_team(tmp_path, config(agent(servers, call("ping"))), environ={})

    assert "There is no tool named 'ping'" in results(ended)[0].result
    assert "MCP server odd: the variable NOWHERE is not set" in ended.directory.log.read_text()


async def test_without_a_sandbox_a_server_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("massgen_mcp.sandbox.levels.BY_ITSELF", ())
    servers = {"odd": sandboxed("server"), "bare": server("server")}
    ended = await run_team(tmp_path, config(agent(servers, call("ping"))), environ={"MASSGEN_MCP_HOME": str(tmp_path)})

    assert results(ended)[0].result == "ping {} number 1"
    assert "MCP server odd: no sandbox works here" in ended.directory.log.read_text()


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"command": "x", "env": {"API_KEY": "sk-1"}}, "write API_KEY: ${NAME}; never put a key in a file"),
        ({"url": "https://x.example", "headers": {"Authorization": "Bearer 1"}}, "never put a key in a file"),
        ({"command": "${HOME}/x"}, "${NAME} works only in env and headers"),
        ({"type": "sse", "url": "https://x.example"}, "streamable_http"),
        ({"command": "x", "readable": ["../up"]}, "expected absolute paths"),
        ({"command": "x", "network": ["*"]}, "expected host:port"),
        ({"command": "x", "sandobx": False}, "sandbox"),
    ],
)
def test_a_config_that_cannot_be_meant_is_refused_with_its_place(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(MassgenError) as refused:
        config(agent({"odd": settings}))
    assert "mcp_servers" in str(refused.value)
    assert why in str(refused.value)


async def test_a_config_that_an_agent_names_needs_a_yes_for_its_servers(home: TempHome) -> None:
    one = team_agent("one", {"answer": "42"}, mcp_servers={"x": {"command": "sh", "args": ["-c", "evil"]}})
    async with home.client() as client:
        code, message = await expect_error(client, "start_run", question="q", config=home.config("evil", one))
    assert code == "config_untrusted"
    assert "! MCP server: x for one: sh -c evil" in message


# -- resumed runs -----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def hands(path: Path, behaviour: str = "counting") -> AsyncGenerator[tuple[Tool, ...]]:
    """The tools of a server, such as the one that notes every call in a file below `path`."""
    made = StdioServer.model_validate(server(behaviour))
    lost: list[str] = []
    async with ServerHost.open({}, lambda name, _agents, _why: lost.append(name)) as host:
        place = ServerDirectories(path / "workspace", path / "scratch")
        started = host.start("odd", "agent_a", made, place, place, SandboxChoice(None))
        toolbox = Toolbox([started], ToolResults(None, Redactor({})), frozenset())
        await toolbox.ready()
        yield toolbox.tools()


async def test_cut_off_at_any_event_no_call_of_a_server_is_made_twice(tmp_path: Path) -> None:
    script = [call("ping", word="one"), call("ping", word="two"), {"answer": "42"}]

    async def again(name: str, past: Sequence[LogRecord]) -> tuple[list[Event], list[str]]:
        """The rest of the run with a server that knows nothing: what it notes was called now."""
        async with hands(tmp_path / name) as tools:
            rest = await perform(script, tools=tools, past=past)
            calls = tmp_path / name / "workspace" / "calls"
            return rest.events, calls.read_text().split() if calls.exists() else []

    await check_every_cut(again)


# -- over HTTP --------------------------------------------------------------------------------------------------------


class OverHttp(BaseHTTPRequestHandler):
    """A server over Streamable HTTP. What its tool does is its name."""

    heard: list[dict[str, str]]
    elsewhere: str = ""
    forgotten: bytes = b""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """Nothing."""

    def do_GET(self) -> None:
        self.send_error(405)

    do_DELETE = do_GET  # noqa: N815 - that is what the library calls

    def do_POST(self) -> None:
        self.heard.append({name.casefold(): value for name, value in self.headers.items()})
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        number, method = message.get("id"), message.get("method")
        params: dict[str, Any] = message.get("params") or {}
        if number is None:
            self._send(202, b"")
        elif method == "initialize":
            about = {"name": "double", "version": "1"}
            capable: dict[str, Any] = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": about,
            }
            self._reply(number, capable, ("Mcp-Session-Id", f"session-{len(self.heard)}"))
        elif method == "tools/list":
            names = ("fine", "large", "squeezed", "redirected", "broken", "expired")
            self._reply(number, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]})
        elif method == "tools/call":
            self._call(number, params["name"])
        else:
            self._send(
                200, json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no"}}).encode()
            )

    def _call(self, number: int, name: str) -> None:
        words = {"content": [{"type": "text", "text": "x" * 100_000_000 if name == "large" else "fine"}]}
        match name:
            case "squeezed":
                whole = json.dumps({"jsonrpc": "2.0", "id": number, "result": {**words, "_meta": {"x": "y" * 10**7}}})
                self._send(200, gzip.compress(whole.encode()), ("Content-Encoding", "gzip"))
            case "redirected":
                self._send(307, b"", ("Location", self.elsewhere))
            case "expired":
                self._send(404, self.forgotten)
            case "broken":
                self._send(500, b"<html>")
            case _:
                self._reply(number, words)

    def _reply(self, number: int, result: dict[str, Any], *headers: tuple[str, str]) -> None:
        self._send(200, json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode(), *headers)

    def _send(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (("Content-Type", "application/json"), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            self.close_connection = True


@contextmanager
def over_http(**behaviour: object) -> Generator[tuple[str, list[dict[str, str]]]]:
    """The server's address, and the headers of the requests that came."""
    heard: list[dict[str, str]] = []
    handler = type("Handler", (OverHttp,), {"heard": heard, **behaviour})
    served = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{served.server_port}/mcp", heard
    finally:
        served.shutdown()
        served.server_close()
        thread.join()


async def test_a_server_over_http_is_sent_its_headers_and_nobody_else_is(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    with over_http() as (foreign, leaked), over_http(elsewhere=foreign) as (url, heard):
        servers = {"web": {"url": url, "headers": {"Authorization": "Bearer ${GIVEN}"}}}
        calls = [call(name) for name in ("fine", "redirected", "broken", "fine")]
        fine, redirected, broken, after = results(
            await run_team(tmp_path, config(agent(servers, *calls)), environ=environ)
        )

    assert (fine.result, after.result) == ("fine", "fine")
    assert redirected.is_error
    assert broken.is_error
    assert heard
    assert {headers["authorization"] for headers in heard} == {f"Bearer {SECRET}"}
    assert leaked == []


FORGOTTEN = {
    "nothing": b"",
    "a page": b"<html><body>404 Not Found</body></html>",
    "words": b"Session not found",
    "an error of the call": b'{"jsonrpc": "2.0", "id": 2, "error": {"code": -32001, "message": "Session not found"}}',
    "an error of no call": b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no such session"}}',
    "an error of another name": b'{"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32000, "message": "no"}}',
    "an object of its own": b'{"detail": "Session has expired"}',
}
"""What stands in the body of the 404 that says so, by servers of several SDKs."""


@pytest.mark.parametrize("form", FORGOTTEN)
async def test_a_server_over_http_that_forgot_its_session_is_asked_for_another(tmp_path: Path, form: str) -> None:
    with over_http(forgotten=FORGOTTEN[form]) as (url, heard):
        calls = [call("expired"), call("fine")]
        expired, fine = results(await run_team(tmp_path, config(agent({"web": {"url": url}}, *calls))))

    assert expired.result.startswith("The MCP server web was lost: ")
    assert fine.result == "fine"
    assert len({headers["mcp-session-id"] for headers in heard if "mcp-session-id" in headers}) == 2


async def test_replies_over_http_are_bounded(tmp_path: Path) -> None:
    with over_http() as (url, _):
        calls = [call(name) for name in ("large", "squeezed", "fine")]
        large, squeezed, fine = results(await run_team(tmp_path, config(agent({"web": {"url": url}}, *calls))))

    assert large.is_error
    assert squeezed.is_error
    assert fine.result == "fine"


# -- what providers are told ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOMBS)
def test_whatever_a_schema_is_a_provider_gets_a_small_plain_one(name: str) -> None:
    told = plain_schema(BOMBS[name])
    text = json.dumps(told)

    assert told["type"] == "object"
    assert isinstance(told["properties"], dict)
    assert len(text) < 20_000
    assert "$ref" not in text
    assert '"pattern"' not in text
    assert text.count('"properties"') <= 100


async def test_what_a_model_reads_of_a_servers_tools_is_bounded(tmp_path: Path) -> None:
    async with hands(tmp_path, "chattering") as tools:
        specs = [[tool.spec.description, tool.spec.parameters] for tool in tools]
    assert 0 < len(specs) < 90
    assert len(json.dumps(specs)) <= 61_000


def test_an_ordinary_schema_stays_as_it_is() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where."},
            "depth": {"type": "integer", "minimum": 1, "maximum": 9},
            "kinds": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "either": {"anyOf": [{"type": "string"}, {"type": "number"}]},
        },
        "required": ["path"],
        "additionalProperties": False,
    }

    assert plain_schema(schema) == schema


# -- servers that nobody here wrote -----------------------------------------------------------------------------------


def from_npm(package: str, *arguments: str, **settings: Any) -> dict[str, Any]:
    """An npm package's server, in the sandbox, waited for however busy the machine is."""
    script = npm_tool(f"@modelcontextprotocol/{package}/dist/index.js")
    return {"command": node(), "args": [script, *arguments], "start_seconds": 300, **settings}


@needs_sandbox
@pytest.mark.parametrize("sandboxed", [pytest.param(True, marks=needs_bubblewrap), False])
async def test_servers_that_nobody_here_wrote_work(tmp_path: Path, environ: dict[str, str], sandboxed: bool) -> None:
    files = from_npm("server-filesystem", ".", sandbox=sandboxed)
    servers = {"files": files, "every": from_npm("server-everything", "stdio")}
    calls = [
        call("files__write_file", path="made.txt", content="by the server"),
        call("read_file", path="made.txt"),
        call("list_allowed_directories"),
        call("read_text_file", path="/etc/hostname"),
        call("echo", message="hello"),
        call("get-sum", a=2, b=40),
        call("get-tiny-image"),
    ]
    ended = await run_team(tmp_path, config(agent(servers, *calls)), environ=environ)

    wrote, read, allowed, denied, echoed, summed, image = worked(ended)
    assert not wrote.is_error, wrote.result
    assert read.result == "by the server"
    assert ("/workspace" if sandboxed else str(ended.directory.workspace_of("agent_a"))) in allowed.result
    assert denied.is_error
    assert "hello" in echoed.result
    assert "42" in summed.result
    assert "[image/png, " in image.result
    (kept,) = (ended.directory.workspace_of("agent_a") / "tool_results").iterdir()
    assert kept.read_bytes().startswith(b"\x89PNG")


def accepted(home: TempHome, path: str) -> str:
    """The config, which a person has accepted."""
    file = read_file(path, home.environ, home.work)
    remember(file, file.digest(), home.environ)
    return path


async def test_a_server_that_was_lost_is_told_with_the_result_and_in_the_record(home: TempHome) -> None:
    servers = {"odd": server("crashing"), "never": {"command": "/nowhere/server", "sandbox": False}}
    path = accepted(home, home.config("lost", agent(servers, call("look"))))
    async with home.client() as client:
        planned = await mcp_call(client, "start_run", question="q", config=path, dry_run=True)
        assert "odd of agent1 (outside the sandbox)" in planned["note"]
        assert "never of agent1 (not started: program not found: /nowhere/server)" in planned["note"]
        done = await mcp_call(client, "start_run", question="q", config=path, wait_seconds=50)
        found = await mcp_call(client, "get_result", run_id=done["run_id"])
    assert found["answer"] == "42"
    assert "MCP server never of agent1: program not found: /nowhere/server." in found["note"]
    assert "MCP server odd of agent1: it ended (exit code " in found["note"]
    run = home.run_directory(done["run_id"])
    lost = {event["server"] for event in events_of(run) if event["type"] == "server_lost"}
    assert lost == {"odd", "never"}
    assert "odd of agent1 (outside the sandbox)" in (run / "execution_metadata.yaml").read_text()
    assert "the MCP server odd (for agent1) is unavailable" in (run / "massgen.log").read_text()
    printed = run_command(home, COMMAND_MODULE, "--automation", "--config", path, "q").stdout
    assert "\nWARNING: MCP server never of agent1: program not found: /nowhere/server\n" in printed
    page = next(line.removeprefix("REPORT: ") for line in printed.splitlines() if line.startswith("REPORT: "))
    assert "MCP server never of agent1: program not found: /nowhere/server" in Path(page).read_text()
