"""Several machines that share a home: whose runner is lost is decided by its lease, and a journal has one writer."""

import json
import signal

from tests.harness import RUNNER_MODULE, TempHome, agent, call, end, happened, wait_until

SLOW = {"answer": "the answer", "delay_seconds": 3}


def machines(home: TempHome) -> tuple[TempHome, TempHome]:
    """The same home as two machines see it; a runner that is silent for three seconds is lost to the other one."""
    lease = {"MASSGEN_MCP_LEASE_SECONDS": "3"}
    return (
        home.with_variables(MASSGEN_MCP_MACHINE="one", **lease),
        home.with_variables(MASSGEN_MCP_MACHINE="two", **lease),
    )


async def test_a_run_of_a_lost_machine_goes_on_elsewhere_when_its_lease_is_over(home: TempHome) -> None:
    one, two = machines(home)
    config = home.config("slow", agent("solo", SLOW, SLOW))
    async with one.client() as first, two.client() as client:
        run_id = (await call(first, "start_run", question="q", config=config))["run_id"]
        await wait_until(lambda: happened(home.run_directory(run_id), "model_call_started"))
        (runner,) = home.processes(RUNNER_MODULE)
        end(runner, signal.SIGKILL)
        await wait_until(lambda: not home.processes(RUNNER_MODULE))
        status = await call(client, "get_status", run_id=run_id)
        assert status["status"] == "running", "from elsewhere a lease that is not over must be believed"
        waited = await call(client, "wait_run", run_id=run_id, timeout_seconds=30)
        assert waited["status"] == "completed"
        assert (await call(client, "get_result", run_id=run_id))["resumed"] == 1


async def test_a_runner_that_stood_still_for_longer_than_its_lease_writes_nothing_any_more(home: TempHome) -> None:
    one, two = machines(home)
    config = home.config("slow", agent("solo", SLOW), agent("other", SLOW))
    async with one.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        await wait_until(lambda: happened(home.run_directory(run_id), "model_call_started"))
        (frozen,) = home.processes(RUNNER_MODULE)
        end(frozen, signal.SIGSTOP)
    try:
        async with two.client() as client:
            await wait_until(lambda: True)
            waited = await call(client, "wait_run", run_id=run_id, timeout_seconds=40)
            while waited["status"] == "running":
                waited = await call(client, "wait_run", run_id=run_id, timeout_seconds=40)
            assert waited["status"] == "completed"
    finally:
        end(frozen, signal.SIGCONT)
    journal = home.run_directory(run_id) / "events.jsonl"
    before = journal.read_bytes()
    await wait_until(lambda: frozen not in home.processes(RUNNER_MODULE), 30)
    assert journal.read_bytes() == before
    events = [json.loads(line)["event"]["type"] for line in before.splitlines()]
    assert events.count("run_completed") == 1
