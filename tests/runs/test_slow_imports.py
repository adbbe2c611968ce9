"""A provider's SDK whose import does not come to its end: limits and controls bind all the same."""

import os
from pathlib import Path

from tests.harness import RUNNER_MODULE, TempHome, call, events_of, happened, wait_until

SDK = """
import os, sys
here = os.path.dirname(os.path.dirname(__file__))
with open(os.path.join(here, "imports"), "a") as imports:
    imports.write("begun\\n")
open(os.path.join(here, "gate")).close()  # until somebody opens the other side
sys.path.remove(here)
del sys.modules["openai"]
import openai
"""


def with_blocked_sdk(home: TempHome) -> tuple[TempHome, Path]:
    """Whoever imports `openai` in this home waits until the gate, a FIFO in the directory, is opened for writing."""
    directory = home.work / "packages"
    (directory / "openai").mkdir(parents=True)
    (directory / "openai" / "__init__.py").write_text(SDK)
    os.mkfifo(directory / "gate")
    return home.with_variables(PYTHONPATH=str(directory)), directory


def config(home: TempHome, name: str, seconds: float, **timeouts: float) -> str:
    price = {"input_usd_per_million": 3, "output_usd_per_million": 15}
    backend = {"type": "chatcompletion", "model": "m", "base_url": "http://127.0.0.1:9/v1", "price": price}
    agents = [{"id": f"agent_{number}", "backend": backend} for number in (1, 2)]
    return home.config(name, *agents, timeout_settings={"orchestrator_timeout_seconds": seconds, **timeouts})


async def test_limits_and_cancel_bind_during_an_import_and_a_later_run_uses_it(home: TempHome) -> None:
    home, packages = with_blocked_sdk(home)
    async with home.client() as client:
        patient, cancelled, timed_out = [
            (await call(client, "start_run", question="q", config=config(home, name, seconds)))["run_id"]
            for name, seconds in (("patient", 600), ("cancelled", 600), ("timed-out", 1))
        ]
        await wait_until(lambda: happened(home.run_directory(timed_out), "run_timed_out"))
        await wait_until(lambda: happened(home.run_directory(cancelled), "round_started"))
        await call(client, "control_run", run_id=cancelled, action="cancel")
        await wait_until(lambda: happened(home.run_directory(cancelled), "run_cancelled"))
        assert not happened(home.run_directory(patient), "model_call_failed"), "it goes on waiting"
        (packages / "gate").open("w").close()
        assert (await call(client, "wait_run", run_id=patient, timeout_seconds=50))["status"] == "failed"
    failed = [event for event in events_of(home.run_directory(patient)) if event["type"] == "model_call_failed"]
    assert {event["reason"] for event in failed} == {"unreachable"}, "the SDK is there, the model server is not"
    assert (packages / "imports").read_text() == "begun\n", "six agents shared one import"


async def test_an_import_is_no_silence_of_the_model_and_costs_nothing(home: TempHome) -> None:
    home, packages = with_blocked_sdk(home)
    brief = config(home, "brief", 600, call_timeout_seconds=3)  # enough for a call that is refused at once
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=brief))["run_id"]
        await wait_until((packages / "imports").exists)
        stopped = (await call(client, "start_run", question="q", config=config(home, "stopped", 4)))["run_id"]
        await wait_until(lambda: happened(home.run_directory(stopped), "run_timed_out"))
        assert not happened(home.run_directory(run_id), "agent_dropped"), "it was imported for longer than a call takes"
        (packages / "gate").open("w").close()
        ended = await call(client, "wait_run", run_id=run_id, timeout_seconds=50)
        cut_short = await call(client, "wait_run", run_id=stopped, timeout_seconds=50)
    assert ended["reason"].startswith("unreachable"), "nobody is said to have been silent"
    assert [each["usage"]["cost_usd"] for each in (ended, cut_short)] == [0, 0]
    assert [each["usage"]["input_tokens"] for each in (ended, cut_short)] == [0, 0]


async def test_a_runner_leaves_although_an_import_never_ends(home: TempHome) -> None:
    home, packages = with_blocked_sdk(home)
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config(home, "long", 600)))["run_id"]
        await wait_until((packages / "imports").exists)
        await call(client, "control_run", run_id=run_id, action="cancel")
        assert (await call(client, "wait_run", run_id=run_id, timeout_seconds=50))["status"] == "cancelled"
    await wait_until(lambda: not home.processes(RUNNER_MODULE))
