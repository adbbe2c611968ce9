"""Streamable HTTP on loopback: who is let in, and that a run can be driven through it."""

import re
import resource
import stat
import subprocess
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import httpx2
import pytest

from massgen_mcp.certificates import trusted
from tests.harness import (
    MODES,
    PATIENCE_SECONDS,
    SERVER_MODULE,
    HttpServer,
    Mode,
    TempHome,
    agent,
    call,
    http_server,
    wait_until,
)

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@asynccontextmanager
async def knocking() -> AsyncGenerator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(verify=trusted(), trust_env=False, timeout=PATIENCE_SECONDS, headers=ACCEPT) as http:
        yield http


async def knock(server: HttpServer, **headers: str) -> httpx2.Response:
    """An `initialize` with these headers more, `_` standing for `-`."""
    async with knocking() as http:
        shown = {name.replace("_", "-"): value for name, value in headers.items()}
        return await http.post(server.url, json=INITIALIZE, headers=shown)


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_with_the_token_runs_a_team_to_the_end(home: TempHome, mode: Mode) -> None:
    async with http_server(home) as server, server.client(mode) as client:
        run_id = (await call(client, "start_run", question="q", config="scripted"))["run_id"]
        assert (await call(client, "wait_run", run_id=run_id, timeout_seconds=30))["status"] == "completed"
        result = await call(client, "get_result", run_id=run_id)
    assert result["answer"].startswith("Neither")


async def test_the_token_is_in_a_file_for_the_user_alone_and_stays_the_same(home: TempHome) -> None:
    async with http_server(home) as server:
        token = server.token_file.read_text()
        assert stat.S_IMODE(server.token_file.stat().st_mode) == 0o600
        assert server.token_file.is_relative_to(home.path)
        assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
        assert len(token.strip()) >= 32
        assert token.strip() not in (home.work / "http.log").read_text(), "the log names the file, not the token"
    (home.work / "http.log").unlink()
    async with http_server(home) as server:
        assert server.token_file.read_text() == token
        assert (await knock(server, **server.credentials)).status_code == 200


async def test_nobody_gets_in_without_the_right_token(home: TempHome) -> None:
    async with http_server(home) as server:
        token = server.credentials["Authorization"]
        for attempt in ({}, *({"Authorization": wrong} for wrong in ("Bearer", "Bearer x", token[:-1], token + "x"))):
            reply = await knock(server, **attempt)
            assert reply.status_code == 401, attempt
            assert reply.headers["WWW-Authenticate"].startswith("Bearer")
            assert "massgen" not in reply.text.lower()
        async with knocking() as http:
            twice = [("Authorization", "Bearer x"), ("Authorization", token)]
            assert (await http.post(server.url, json=INITIALIZE, headers=twice)).status_code == 401
            assert (await http.get(server.url)).status_code == 401
            assert (await http.get(f"http://{server.authority}/")).status_code == 404, "there is nothing else"


async def test_a_request_that_names_another_host_is_misdirected(home: TempHome) -> None:
    async with http_server(home) as server:
        port = server.authority.rpartition(":")[2]
        for host in ("evil.com", f"evil.com:{port}", f"127.0.0.1:{port}.evil.com", "127.0.0.1", f"127.0.0.1:{port}0"):
            reply = await knock(server, **server.credentials, Host=host)
            assert reply.status_code == 421, host
        assert (await knock(server, **server.credentials, Host=f"localhost:{port}")).status_code == 200


async def test_a_page_of_another_origin_is_forbidden(home: TempHome) -> None:
    async with http_server(home) as server:
        here = f"http://{server.authority}"
        for origin in ("http://evil.com", f"{here}.evil.com", here.replace("http:", "https:"), "null", ""):
            reply = await knock(server, **server.credentials, Origin=origin)
            assert reply.status_code == 403, origin
        assert (await knock(server, **server.credentials, Origin=here)).status_code == 200


async def test_a_body_beyond_the_limit_is_refused_and_the_server_goes_on(home: TempHome) -> None:
    async with http_server(home) as server:
        async with knocking() as http:
            huge = {**INITIALIZE, "padding": "x" * (5 * 1024 * 1024)}
            reply = await http.post(server.url, json=huge, headers=server.credentials)
            assert reply.status_code == 413
        assert (await knock(server, **server.credentials)).status_code == 200


async def test_the_http_server_leaves_on_sigterm(home: TempHome) -> None:
    async with http_server(home) as server:
        server.process.terminate()
        with anyio.fail_after(PATIENCE_SECONDS):
            assert await server.process.wait() == 0


async def test_half_open_connections_give_way_to_a_client_with_the_token(home: TempHome) -> None:
    async with http_server(home) as server, AsyncExitStack() as open_ones:
        strangers = [await half_open(server, open_ones, b"POST /mcp HTTP/1.1\r\nX-Slow: ") for _ in range(700)]
        assert (await knock(server, **server.credentials)).status_code == 200
        assert await closed(strangers[0])
        assert len(list(Path(f"/proc/{process_of(server, home)}/fd").iterdir())) < 400, "the oldest gave way"


async def test_as_many_connections_are_taken_as_the_machine_allows_and_a_lack_of_room_is_logged_once(
    home: TempHome,
) -> None:
    ours = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with AsyncExitStack() as open_ones:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, ours[1]))  # what is started here inherits it
        try:
            server = await open_ones.enter_async_context(http_server(replace(home, starts_anew=True)))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, ours)
        pid, log = server.process.pid, home.work / "http.log"
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        assert soft == (65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536))
        taken = [int(one.name) for one in Path(f"/proc/{pid}/fd").iterdir()]
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (max(taken) + 1, hard))
        for _ in range(max(taken) + 20 - len(taken)):
            await half_open(server, open_ones, b"")
        assert await wait_until(lambda: "too many open files" in log.read_text())
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        assert (await knock(server, **server.credentials)).status_code == 200
        assert len(re.findall("(?i)too many open files|out of system resource", log.read_text())) == 2


async def test_a_request_that_does_not_come_to_its_end_loses_its_connection(home: TempHome) -> None:
    async with http_server(home) as server, AsyncExitStack() as open_ones:
        slow = [await half_open(server, open_ones, sent) for sent in (b"", b"POST /mcp HTTP/1.1\r\nX-Slow: ")]
        for connection in slow:
            assert await closed(connection)
        assert (await knock(server, **server.credentials)).status_code == 200


async def test_headers_beyond_the_limit_are_refused_also_in_one_piece(home: TempHome) -> None:
    async with http_server(home) as server:
        assert (await knock(server, **server.credentials, X_Large="x" * 60_000)).status_code == 400
        many = {f"X_{number}": "x" for number in range(101)}
        assert (await knock(server, **server.credentials, **many)).status_code == 431
        assert (await knock(server, **server.credentials)).status_code == 200


async def test_sigterm_answers_the_calls_that_wait_and_heeds_no_slow_client(home: TempHome) -> None:
    config = home.config("stuck", agent("one", {"hang": True}))
    async with http_server(home) as server, AsyncExitStack() as open_ones:
        token = server.credentials["Authorization"]
        request = f"POST /mcp HTTP/1.1\r\nHost: {server.authority}\r\nAuthorization: {token}\r\n"
        await half_open(server, open_ones, f"{request}Content-Length: 1000\r\n\r\n{{".encode())
        await half_open(server, open_ones, request.encode())
        async with httpx2.AsyncClient(
            verify=trusted(), trust_env=False, timeout=60, headers={**ACCEPT, **server.credentials}
        ) as http:
            opened = await http.post(server.url, json=INITIALIZE)
            http.headers["Mcp-Session-Id"] = opened.headers["Mcp-Session-Id"]
            started = await http.post(server.url, json=tool_call("start_run", question="q", config=config))
            run_id = re.search(r"run-[0-9a-z-]+", started.text)
            assert run_id
            replies: list[str] = []

            async def wait() -> None:
                waiting = tool_call("wait_run", run_id=run_id.group(), timeout_seconds=50)
                async with http.stream("POST", server.url, json=waiting) as reply:
                    begun.set()
                    replies.append((await reply.aread()).decode())

            begun = anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await begun.wait()
                server.process.terminate()
            assert re.search(r"running|queued", replies[0])
            assert 'isError":true' not in replies[0]
        assert await server.process.wait() == 0, "while the slow clients are still there"
        assert "Traceback" not in (home.work / "http.log").read_text()


def tool_call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def process_of(server: HttpServer, home: TempHome) -> int:
    """The one that serves: what was started may only stand in for it (see `command_server`)."""
    return next((pid for pid in home.processes() if pid != server.process.pid), server.process.pid)


async def half_open(server: HttpServer, open_ones: AsyncExitStack, sent: bytes) -> anyio.abc.SocketStream:
    """A connection on which nothing more than this is sent."""
    host, _, port = server.authority.rpartition(":")
    connection = await open_ones.enter_async_context(await anyio.connect_tcp(host, int(port)))
    if sent:
        await connection.send(sent)
    return connection


async def closed(connection: anyio.abc.SocketStream) -> bool:
    """True as soon as the server has closed it."""
    with anyio.fail_after(60):
        try:
            await connection.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return True
    return False


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])  # noqa: S104 - it must be refused
def test_any_bind_but_loopback_is_refused_as_a_usage_error(home: TempHome, host: str) -> None:
    command = [home.python, "-m", SERVER_MODULE, "--transport", "http", "--host", host]
    done = subprocess.run(
        command, env=home.environ, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 1
    assert "ERROR invalid_arguments" in done.stderr
    assert host in done.stderr
    assert done.stdout == ""


async def test_a_port_that_is_taken_is_a_usage_error(home: TempHome) -> None:
    async with http_server(home) as server:
        port = server.authority.rpartition(":")[2]
        command = [home.python, "-m", SERVER_MODULE, "--transport", "http", "--port", port]
        done = await anyio.run_process(command, env=home.environ, check=False)
    assert done.returncode == 1
    assert port in done.stderr.decode()
