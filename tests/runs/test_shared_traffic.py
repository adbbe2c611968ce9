"""Runs of one process to one provider, through `execute_run` and through a runner: what arrives there."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from massgen_mcp.backends.limiter import LimiterPolicy, ProviderLimiters
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.agent_work import ModelCallWaiting
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import FrozenRequest, RunFiles
from massgen_mcp.runs.engine.journal import JournalReader
from massgen_mcp.runs.host.execute import RunContext, execute_run
from tests.busy_double import busy_server
from tests.commands import run_command
from tests.harness import PATIENCE_SECONDS, POLL_SECONDS, SERVER_MODULE, TempHome, call, home, wait_until
from tests.raw_double import reply, sse

__all__ = ["home"]

DOWN = reply(b'{"error": {"message": "overloaded"}}', status="503 Service Unavailable", media_type="application/json")
IMPATIENT = LimiterPolicy(first_break=0.02, patience=0.1)
CARELESS = LimiterPolicy(failures=10_000)


def answering() -> bytes:
    """A reply that gives an answer."""
    function = {"name": "new_answer", "arguments": '{"content": "42"}'}
    delta = {"role": "assistant", "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    end: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    return reply(sse({**chunk, "choices": [{"index": 0, "delta": delta}]}, {**chunk, "choices": [end]}))


def agents(url: str, count: int = 1) -> list[dict[str, Any]]:
    backend = {"type": "chatcompletion", "model": "m", "base_url": f"{url}/v1"}
    return [{"id": f"a{place}", "backend": backend} for place in range(count)]


async def run_together(
    path: Path, url: str, *, runs: int, team: int = 1, limiters: list[ProviderLimiters], **settings: Any
) -> list[RunState]:
    """Execute that many runs at once, each with the next of `limiters`."""
    config = config_from_data({"agents": agents(url, team), **settings}, "test")
    ended: list[RunState] = []

    async def one(number: int) -> None:
        directory = RunFiles.create(path / f"run{number}", FrozenRequest("What is six times seven?", config))
        shared = limiters[number % len(limiters)]
        ended.append(await execute_run(directory, f"run-{number}", RunContext({}, limiters=shared)))

    async with anyio.create_task_group() as tasks:
        for number in range(runs):
            tasks.start_soon(one, number)
    return ended


async def test_three_runs_of_ten_agents_do_not_hammer_a_provider_that_is_down(tmp_path: Path) -> None:
    limits = {"chatcompletion": {"concurrency": 4}}
    async with busy_server(DOWN) as server:
        ended = await run_together(
            tmp_path, server.url, runs=3, team=10, limiters=[ProviderLimiters(IMPATIENT)], limits=limits
        )
    assert {run.state for run in ended} == {"failed"}
    assert sum("circuit open" in message for run in ended for _, _, message in run.degraded) >= 30 - 18
    # Five open the circuit, three are on their way then; the tries are spread over some seconds, in which there is time
    # for about ten probes, each after twice the time. Without all this it were 120.
    assert len(server.heads) <= 5 + 3 + 10


async def test_without_a_circuit_every_agent_asks_a_provider_that_is_down_to_the_last_try(tmp_path: Path) -> None:
    async with busy_server(DOWN) as server:
        await run_together(tmp_path, server.url, runs=1, team=10, limiters=[ProviderLimiters(CARELESS)])
    assert len(server.heads) == 40


async def test_runs_go_on_when_a_provider_comes_back(tmp_path: Path) -> None:
    async with busy_server(*[DOWN] * 8, answering()) as server:
        limits = {"chatcompletion": {"concurrency": 2}}
        policy = LimiterPolicy(first_break=0.02)
        ended = await run_together(tmp_path, server.url, runs=8, limiters=[ProviderLimiters(policy)], limits=limits)
    assert {run.final_answer for run in ended} == {"42"}
    assert len(server.heads) == 8 + 8


async def test_runs_that_share_the_traffic_keep_to_the_limit_together(tmp_path: Path) -> None:
    async with busy_server(answering(), latency=0.3) as server:
        limits = {"chatcompletion": {"concurrency": 2}}
        ended = await run_together(tmp_path, server.url, runs=6, limiters=[ProviderLimiters()], limits=limits)
    assert {run.final_answer for run in ended} == {"42"}
    assert (len(server.heads), server.most_at_once) == (6, 2)
    records = [record.event for n in range(6) for record in JournalReader(tmp_path / f"run{n}/events.jsonl").read()]
    assert {event.obstacle for event in records if isinstance(event, ModelCallWaiting)} == {"concurrency"}


async def test_runs_that_share_nothing_exceed_the_limit_together(tmp_path: Path) -> None:
    async with busy_server(answering(), latency=0.5) as server:
        limits = {"chatcompletion": {"concurrency": 2}}
        limiters = [ProviderLimiters() for _ in range(6)]
        await run_together(tmp_path, server.url, runs=6, limiters=limiters, limits=limits)
    assert server.most_at_once > 2


async def test_a_runner_keeps_its_runs_to_the_limit_together(home: TempHome) -> None:
    async with busy_server(answering(), latency=0.1) as server, home.client() as client:
        config = home.config("team", *agents(server.url), limits={"chatcompletion": {"concurrency": 1}})
        started = [await call(client, "start_run", question=f"q{n}?", config=config) for n in range(4)]
        for run in started:
            ended = await call(client, "wait_run", run_id=run["run_id"], timeout_seconds=30)
            assert ended["status"] == "completed"
    assert (len(server.heads), server.most_at_once) == (4, 1)


async def test_runs_behind_a_full_limit_stay_queued_and_are_in_nobodys_way(home: TempHome) -> None:
    hold = anyio.Event()
    async with busy_server(answering(), hold=hold) as server, home.client() as client:
        config = home.config("team", *agents(server.url), limits={"chatcompletion": {"concurrency": 1}})
        behind = [(await call(client, "start_run", question=f"number {n}?", config=config))["run_id"] for n in range(6)]
        await wait_until(lambda: len(server.heads) == 1)
        another = await call(client, "start_run", question="q", models=["scripted/x"], wait_seconds=30)
        assert another["status"] == "completed"
        queued = await call(client, "list_runs", state="queued")
        assert [row["run_id"] for row in queued["runs"]] == behind[:1:-1]
        waiting = "a0 (m): waiting in massgen's queue, 0 answers"
        with anyio.fail_after(PATIENCE_SECONDS):
            while [await agents_of(client, run_id) for run_id in behind[:2]].count([waiting]) != 1:
                await anyio.sleep(POLL_SECONDS)
        third = await call(client, "get_status", run_id=behind[3])
        assert "One run is ahead of this one in the queue" in third["next_step"]
        full = f"other runs have reached the limit of 1 parallel call at {server.url}/v1"
        assert third["reason"] == f"provider_limit: {full}"
        assert {row["reason"] for row in queued["runs"]} == {f"provider_limit: {full}"}
        listed = run_command(home, SERVER_MODULE, "runs", "--state", "queued").stdout.splitlines()
        assert [full in line for line in listed] == [True] * 4, listed
        assert (await call(client, "control_run", run_id=behind[3], action="cancel"))["status"] == "cancelled"
        hold.set()
        for run_id in (*behind[:3], *behind[4:]):
            ended = await call(client, "wait_run", run_id=run_id, timeout_seconds=30)
            assert ended["status"] == "completed"
    asked = [body.split(b"number ")[1][:1] for body in server.bodies]
    assert (sorted(asked[:2]), sorted(asked[2:])) == ([b"0", b"1"], [b"2", b"4", b"5"])


async def test_places_that_a_full_limit_leaves_unused_go_to_other_credentials(home: TempHome) -> None:
    home = home.with_variables(MASSGEN_MCP_MAX_RUNNING="6")
    hold = anyio.Event()
    rich, poor = home.with_variables(OPENAI_API_KEY="sk-rich-0001"), home.with_variables(OPENAI_API_KEY="sk-poor-0002")
    async with busy_server(answering(), hold=hold) as server, rich.client() as one, poor.client() as other:
        config = home.config("team", *agents(server.url), limits={"chatcompletion": {"concurrency": 1}})
        behind = [(await call(one, "start_run", question=f"number {n}?", config=config))["run_id"] for n in range(6)]
        stuck = home.config("stuck", {"id": "solo", "backend": {"type": "scripted", "script": [{"hang": True}]}})
        theirs = [(await call(other, "start_run", question="q", config=stuck))["run_id"] for _ in range(4)]
        with anyio.fail_after(PATIENCE_SECONDS):
            while len((await call(one, "list_runs", state="running"))["runs"]) < 6:
                await anyio.sleep(POLL_SECONDS)
        running = {row["run_id"] for row in (await call(one, "list_runs", state="running"))["runs"]}
        assert running == {*behind[:2], *theirs}
        for run_id in theirs:
            await call(other, "control_run", run_id=run_id, action="cancel")
        hold.set()
        for run_id in behind:
            assert (await call(one, "wait_run", run_id=run_id, timeout_seconds=30))["status"] == "completed"


async def agents_of(client: Client, run_id: str) -> list[str]:
    return (await call(client, "get_status", run_id=run_id))["agents"]


async def test_a_pause_longer_than_the_run_ends_it_with_its_cause(tmp_path: Path) -> None:
    busy = reply(
        b'{"error": {"message": "slow down"}}',
        status="429 Too Many Requests",
        media_type="application/json",
        headers={"Retry-After": "40"},
    )
    async with busy_server(busy) as server:
        timeouts = {"orchestrator_timeout_seconds": 30}
        with anyio.fail_after(PATIENCE_SECONDS):
            (run,) = await run_together(
                tmp_path, server.url, runs=1, limiters=[ProviderLimiters()], timeout_settings=timeouts
            )
    assert run.state == "failed"
    assert run.degraded[0][1] == "rate_limited"
    assert len(server.heads) == 1


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"opnai": {"concurrency": 1}}, "did you mean 'openai'"),
        ({"scripted": {}}, "isn't a backend type that calls a provider"),
        ({"openai": {"concurrency": 0}}, r"limits\.openai\.concurrency: "),
        ({"openai": {"rpm": 5}}, "requests_per_minute"),
    ],
)
def test_wrong_limits_are_told(limits: dict[str, Any], told: str) -> None:
    backend = {"type": "scripted"}
    with pytest.raises(MassgenError, match=told):
        config_from_data({"agents": [{"id": "a", "backend": backend}], "limits": limits}, "test")
