"""How a server ends: at once, cleanly, whoever asks, and without a word on standard output that is no message."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import anyio
import pytest

from tests.harness import (
    PATIENCE_SECONDS,
    SERVER_MODULE,
    RawServer,
    TempHome,
    agent,
    end,
    raw_server,
    spawned,
    wait_until,
)

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.fixture
def home(home: TempHome) -> TempHome:
    """How a process ends is seen on processes that were started as a user starts them."""
    return replace(home, starts_anew=True)


async def begin_waiting(home: TempHome, server: RawServer) -> None:
    """Leave a `wait_run` unanswered in the server."""
    config = home.config("stuck", agent("one", {"hang": True}))
    started = await server.ask("tools/call", name="start_run", arguments={"question": "q", "config": config})
    run_id = started["result"]["structuredContent"]["run_id"]
    await server.request("tools/call", name="wait_run", arguments={"run_id": run_id, "timeout_seconds": 50})


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "with a call in flight"])
async def test_the_end_of_standard_input_ends_the_server(home: TempHome, busy: bool) -> None:
    async with raw_server(home) as server:
        if busy:
            await begin_waiting(home, server)
        await server.stdin.aclose()
        assert await server.leave() == 0


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "with a call in flight"])
@pytest.mark.parametrize("sign", SIGNALS, ids=lambda sign: sign.name)
async def test_a_signal_ends_the_server_although_its_input_stays_open(
    home: TempHome, sign: signal.Signals, busy: bool
) -> None:
    async with raw_server(home) as server:
        if busy:
            await begin_waiting(home, server)
        server.process.send_signal(sign)
        assert await server.leave() == 0


async def test_sigint_and_sigterm_a_moment_later_end_the_server(home: TempHome) -> None:
    """As Claude Code ends its servers: both signals, standard input left open."""
    async with raw_server(home) as server:
        server.process.send_signal(signal.SIGINT)
        with anyio.move_on_after(0.1):
            await server.process.wait()
        if server.process.returncode is None:
            end(server.process.pid, signal.SIGTERM)
        assert await server.leave() == 0


async def test_the_server_goes_away_when_its_parent_was_killed(home: TempHome) -> None:
    """Its input stays open in another process, so there is no end of file to hear."""
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-m', {SERVER_MODULE!r}]).wait()"
    reader, writer = os.pipe()
    try:
        async with spawned(home, sys.executable, "-c", code, stdin=reader, stderr=subprocess.DEVNULL) as parent:
            assert parent.stdout
            hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
            message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
            os.write(writer, json.dumps(message).encode() + b"\n")
            with anyio.fail_after(PATIENCE_SECONDS):
                assert b"serverInfo" in await parent.stdout.receive()
            (server,) = home.processes(SERVER_MODULE)
            end(parent.pid, signal.SIGKILL)
            await wait_until(lambda: server not in home.processes())
    finally:
        os.close(reader)
        os.close(writer)


async def test_standard_output_carries_the_protocol_and_nothing_else(home: TempHome) -> None:
    async with raw_server(home) as server:
        await server.ask("tools/list")
        await server.send(b"this is not JSON")
        await server.ask("no/such/method")
        await server.ask("tools/call", name="no_such_tool", arguments={})
        arguments = {"question": "q", "models": ["scripted/x"], "wait_seconds": 30}
        await server.ask("tools/call", name="start_run", arguments=arguments)
        await server.ask("tools/call", name="get_status", arguments={"run_id": "../x"})
        await server.stdin.aclose()
        assert await server.leave() == 0
    messages = [json.loads(line) for line in server.lines]
    assert len(messages) >= 6
    assert all(message["jsonrpc"] == "2.0" for message in messages)
