"""The budget as a parent agent meets it: an estimate before, the cap in the status, a raise when the run asks."""

import json
import re
from typing import Any

from tests.commands import run_command
from tests.harness import SERVER_MODULE, TempHome, agent, call, events_of, expect_error

PRICE = {"input_usd_per_million": 1_000, "output_usd_per_million": 1_000}
"""So dear that a scripted agent's words are worth dollars."""


def dear(name: str, **settings: Any) -> dict[str, Any]:
    return agent(name, price=PRICE, **settings)


async def test_a_run_that_asks_at_its_cap_goes_on_when_the_budget_is_raised(home: TempHome) -> None:
    config = home.config("team", dear("one"), dear("two"), budget={"max_usd": 0.5, "at_cap": "ask"})
    async with home.client() as client:
        started = await call(client, "start_run", question="q", config=config, wait_seconds=30)
        run_id = started["run_id"]
        status = await call(client, "get_status", run_id=run_id)
        assert (status["status"], status["max_usd"]) == ("input_required", 0.5)
        assert "raise_budget" in status["next_step"]
        code, message = await expect_error(client, "control_run", run_id=run_id, action="answer", message="go on")
        assert (code, "raise_budget" in message) == ("invalid_action", True)
        code, _ = await expect_error(client, "control_run", run_id=run_id, action="raise_budget", value=0.4)
        assert code == "invalid_arguments"
        kept = await call(client, "control_run", run_id=run_id, action="raise_budget", value=500)
        assert f"`massgen raise-budget {run_id} 500`" in kept["next_step"]
        assert (await call(client, "get_status", run_id=run_id))["max_usd"] == 0.5, "a model alone spends no more"
        assert run_command(home, SERVER_MODULE, "raise-budget", run_id, "500").returncode == 0
        done = await call(client, "wait_run", run_id=run_id, timeout_seconds=45)
        result = await call(client, "get_result", run_id=run_id)
    assert (done["status"], result["degraded"]) == ("completed", [])
    assert 0.5 < result["usage"]["cost_usd"] <= 500
    directory = home.run_directory(run_id)
    record = json.loads((directory / "coordination_events.json").read_text())
    (raised,) = [event for event in record["events"] if event["event_type"] == "budget_raised"]
    assert raised["context"]["max_usd"] == 500
    assert raised["details"] in (directory / "coordination_table.txt").read_text()


async def test_the_cap_of_a_call_to_start_run_goes_before_the_configs(home: TempHome) -> None:
    config = home.config("team", dear("one"), dear("two"), budget={"max_usd": 500})
    async with home.client() as client:
        planned = await call(client, "start_run", question="q", config=config, max_usd=0.5, dry_run=True)
        assert "max_usd 0.5" in planned["estimate"]
        assert "model calls" in planned["estimate"]
        started = await call(client, "start_run", question="q", config=config, max_usd=0.5, wait_seconds=30)
        result = await call(client, "get_result", run_id=started["run_id"])
    assert (result["status"], "answer" in result) == ("failed", False)
    assert result["reason"].startswith("budget: ")
    assert "The run reached its budget" in result["note"]
    directory = home.run_directory(started["run_id"])
    assert not [event for event in events_of(directory) if event["type"] == "model_call_started"]
    assert re.search(r" \| WARNING \| (one|two): .*max_usd", (directory / "massgen.log").read_text())


async def test_where_no_price_is_known_the_estimate_and_the_result_say_so(home: TempHome) -> None:
    config = home.config("team", agent("one", price=None), agent("two", price=None))
    async with home.client() as client:
        planned = await call(client, "start_run", question="q", config=config, dry_run=True)
        assert planned["estimate"].startswith("price unknown, usually 1 to 3 minutes, 5 to ")
        started = await call(client, "start_run", question="q", config=config, wait_seconds=30)
        result = await call(client, "get_result", run_id=started["run_id"])
    assert "cost_usd" not in result["usage"]
    assert result["usage"]["unpriced_calls"] == result["usage"]["model_calls"] > 0
