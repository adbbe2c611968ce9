"""Servers that the operator names hear of the end of every run of an HTTP server."""

import hashlib
import hmac
import json
import time

import pytest

from tests.commands import run_command
from tests.harness import SERVER_MODULE, TempHome, call, http_server, wait_until
from tests.raw_double import Seen, answering, raw_server, reply

SECRET = "a-secret-of-the-operator"


def hooked(home: TempHome, *urls: str, secret: str = SECRET) -> TempHome:
    return home.with_variables(MASSGEN_MCP_WEBHOOKS=" ".join(urls), MASSGEN_MCP_WEBHOOK_SECRET=secret)


async def run_of(home: TempHome) -> str:
    async with http_server(home) as server, server.client("auto") as client:
        run_id = (await call(client, "start_run", question="q", config="scripted"))["run_id"]
        assert (await call(client, "wait_run", run_id=run_id, timeout_seconds=30))["status"] == "completed"
    return str(run_id)


def runner_log(home: TempHome) -> str:
    return "".join(log.read_text() for log in (home.path / "runners").glob("*.log"))


def is_signed(seen: Seen) -> bool:
    stamp = seen.headers["massgen-timestamp"]
    signed = f"{stamp}.{json.dumps(seen.body)}".encode()
    expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    return abs(time.time() - int(stamp)) < 60 and seen.headers["massgen-signature"] == f"sha256={expected}"


async def test_the_end_of_a_run_is_told_signed_and_again_after_a_fault_of_the_server(home: TempHome) -> None:
    fault, heard = reply(b"", status="503 Not now"), reply(b"")
    async with raw_server(fault, heard) as double:
        run_id = await run_of(hooked(home, f"{double.url}/hook"))
        await wait_until(lambda: len(double.requests) == 2)
    for seen in double.requests:
        assert seen.path == "/hook"
        assert is_signed(seen)
        assert set(seen.body) == {"run_id", "state", "outcome", "usd", "weak", "failure"}
        assert (seen.body["run_id"], seen.body["state"]) == (run_id, "completed")
        assert isinstance(seen.body["usd"], float)


async def test_nobody_is_sent_elsewhere_and_a_refusal_is_a_line_in_the_log(home: TempHome) -> None:
    def respond(_: Seen, number: int) -> bytes:
        assert number == 0, "it was followed, or tried again"
        return reply(b"", status="307 Elsewhere", headers={"Location": "/elsewhere"})

    async with answering(respond) as double:
        home = hooked(home, f"{double.url}/hook")
        await run_of(home)
        await wait_until(lambda: f"webhook {double.url}/hook: HTTP 307" in runner_log(home))
    assert SECRET not in runner_log(home)


@pytest.mark.parametrize(
    ("urls", "secret", "fault"),
    [
        ("http://example.com/hook", SECRET, "MASSGEN_MCP_WEBHOOKS: expected https:// URLs"),
        ("https://a.example/ https://b.example/?to=x", SECRET, "MASSGEN_MCP_WEBHOOKS: expected https:// URLs"),
        ("https://a.example/", "short", "MASSGEN_MCP_WEBHOOK_SECRET of at least 16 characters"),
    ],
)
def test_a_server_does_not_begin_with_addresses_that_are_wrong(
    home: TempHome, urls: str, secret: str, fault: str
) -> None:
    refused = run_command(hooked(home, urls, secret=secret), SERVER_MODULE, "--transport", "http")
    assert refused.returncode != 0
    assert fault in refused.stderr


async def test_runs_that_were_started_without_it_are_not_told_by_a_runner_that_tells_of_others(home: TempHome) -> None:
    async with raw_server(reply(b"")) as double:
        told = hooked(home, double.url).with_variables(MASSGEN_MCP_RUNNER_IDLE_SECONDS="30")
        ids: list[str] = []
        for starter in (told, home, told):
            async with starter.client() as client:
                started = await call(client, "start_run", question="q", config="scripted", wait_seconds=30)
                ids.append(started["run_id"])
        await wait_until(lambda: len(double.requests) == 2)
    assert sorted(seen.body["run_id"] for seen in double.requests) == sorted(ids[::2])
