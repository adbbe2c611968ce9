"""What a run costs is the sum of what the providers counted times the prices, to the fraction of a cent."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.harness import TempHome, call, events_of, poll_until
from tests.raw_double import raw_server, reply, sse
from tests.wire_double import Aimock

TEAM = {"m-responses": "openai", "m-chat": "chatcompletion", "m-claude": "claude"}
PRICES = {
    "m-responses": {"input_usd_per_million": 1.25, "output_usd_per_million": 10},
    "m-chat": {"input_usd_per_million": 0.27, "output_usd_per_million": 1.1},
    "m-claude": {"input_usd_per_million": 3.7, "output_usd_per_million": 18.51},
}
ANSWERED, VOTED, PRESENTED = (4321, 987), (6543, 21), (7777, 1234)
"""Input and output tokens that the double tells for each kind of call."""


def say(tokens: tuple[int, int], **response: Any) -> dict[str, Any]:
    read, written = tokens
    usage = {
        "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
        "input_tokens": read, "output_tokens": written,
    }  # fmt: skip
    return {**response, "usage": usage}


def script(aimock: Aimock) -> None:
    vote = {"reason": "Good.", "agent_id": "agent3", "same_as": ["agent1", "agent2"]}  # so there is no tie
    ballot = {
        "match": {"userMessage": '<answer name="agent3"', "toolName": "vote"},
        "response": say(VOTED, toolCalls=[{"name": "vote", "arguments": vote}]),
    }
    answer = {"name": "new_answer", "arguments": {"content": "42"}}
    aimock.load(
        {"match": {"userMessage": "Write the final answer now"}, "response": say(PRESENTED, content="It is 42.")},
        ballot,
        *(
            {
                "match": {"model": model, "toolName": "new_answer"},
                "response": say(ANSWERED, toolCalls=[{**answer, "arguments": {"content": f"{model}: 42"}}]),
            }
            for model in TEAM
        ),
    )


def backend(model: str, url: str, price: dict[str, float] | None) -> dict[str, Any]:
    root = url if TEAM[model] == "claude" else f"{url}/v1"
    settings = {"type": TEAM[model], "model": model, "base_url": root, "api_key_env": "SOME_KEY"}
    return settings if price is None else {**settings, "price": price}


def bill(event: dict[str, Any]) -> Decimal:
    price, usage = PRICES[event["model"]], event["usage"]
    per_million = usage["input_tokens"] * Decimal(str(price["input_usd_per_million"])) + usage[
        "output_tokens"
    ] * Decimal(str(price["output_usd_per_million"]))
    return per_million / 1_000_000


def status_of(run: Path) -> dict[str, Any]:
    """The last one, which is written after the last event."""

    def last() -> dict[str, Any] | None:
        status: dict[str, Any] = json.loads((run / "status.json").read_text())
        return status if status["coordination"]["completion_percentage"] == 100 else None

    status = poll_until(last)
    assert status is not None
    return status


async def test_a_runs_cost_is_the_sum_of_usage_times_price_on_all_three_wires(home: TempHome, aimock: Aimock) -> None:
    script(aimock)
    agents = [
        {"id": model, "backend": backend(model, aimock.url, PRICES[model]), "system_message": "Be brief."}
        for model in TEAM
    ]
    config = home.config("team", *agents, orchestrator={"enable_filesystem": False})
    async with home.with_variables(SOME_KEY="k").client() as client:
        started = await call(client, "start_run", question="What is it?", config=config, wait_seconds=50)
        status = await call(client, "get_status", run_id=started["run_id"])
        result = await call(client, "get_result", run_id=started["run_id"])

    run = home.run_directory(started["run_id"])
    replies = [event for event in events_of(run) if event["type"] == "model_replied"]
    told = sorted((event["usage"]["input_tokens"], event["usage"]["output_tokens"]) for event in replies)
    assert told == sorted([*[ANSWERED] * 3, *[VOTED] * 3, PRESENTED])
    winner = next(event["model"] for event in replies if event["purpose"] == "present")
    expected = {model: Decimal(0) for model in TEAM}
    for model in TEAM:
        calls = [ANSWERED, VOTED, *([PRESENTED] if model == winner else [])]
        expected[model] = sum(
            (
                bill({"model": model, "usage": {"input_tokens": read, "output_tokens": written}})
                for read, written in calls
            ),
            Decimal(0),
        )
    total = float(sum(expected.values()))

    assert result["usage"]["cost_usd"] == pytest.approx(total, abs=1e-9)
    assert (status["max_usd"], "note" in status) == (10, False)
    assert status["spent_usd"] == pytest.approx(total, abs=1e-9)
    assert "unpriced_calls" not in result["usage"]
    telemetry = status_of(run)["telemetry"]
    assert telemetry["total_calls"] == 7
    for place, model in enumerate(TEAM):
        for sums in (telemetry["by_model"][model], telemetry["by_agent"][f"agent_{'abc'[place]}"]):
            assert sums["cost"] == pytest.approx(float(expected[model]), abs=1e-9)
            assert sums["calls"] == (3 if model == winner else 2)
            assert sums["latency"] > 0
    assert {event["cost"]["source"] for event in replies} == {"config"}
    record = json.loads((run / "coordination_events.json").read_text())
    assert record["session_metadata"]["spent"]["cost"] == pytest.approx(total, abs=1e-9)
    assert f"Spent: ${total:.4f} for 7 calls" in (run / "coordination_table.txt").read_text()


async def test_a_model_of_this_machine_without_a_price_is_free_and_its_calls_are_counted(
    home: TempHome, aimock: Aimock
) -> None:
    script(aimock)
    agents = [
        {"id": "priced", "backend": backend("m-chat", aimock.url, PRICES["m-chat"])},
        {"id": "unpriced", "backend": backend("m-claude", aimock.url, None)},
    ]
    config = home.config("team", *agents, orchestrator={"enable_filesystem": False})
    async with home.with_variables(SOME_KEY="k").client() as client:
        started = await call(client, "start_run", question="What is it?", config=config, wait_seconds=50)
        result = await call(client, "get_result", run_id=started["run_id"])
    telemetry = status_of(home.run_directory(started["run_id"]))["telemetry"]
    free = telemetry["by_model"]["m-claude"]
    assert (free["cost"], free["unpriced_calls"]) == (0.0, 0)
    assert free["tokens"] > 0
    assert free["calls"] > 0
    known = telemetry["by_model"]["m-chat"]
    assert known["unpriced_calls"] == 0
    assert result["usage"]["cost_usd"] == known["cost"] > 0
    assert "no known price" not in result.get("note", "")
    assert result["usage"].get("unpriced_calls", 0) == 0


async def test_what_openrouter_says_that_a_call_cost_is_what_it_cost(home: TempHome) -> None:
    fragment = {"index": 0, "id": "c1", "function": {"name": "new_answer", "arguments": '{"content": "42"}'}}
    frame = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "some/model-served"}
    choice = {"index": 0, "delta": {"tool_calls": [fragment]}, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940, "cost": 0.01234567}
    body = sse({**frame, "choices": [choice]}, {**frame, "choices": [], "usage": usage}, "[DONE]")
    async with raw_server(reply(body)) as server, home.with_variables(SOME_KEY="k").client() as client:
        router = {"type": "openrouter", "model": "some/model", "base_url": server.url, "api_key_env": "SOME_KEY"}
        config = home.config("one", {"id": "router", "backend": router}, orchestrator={"enable_filesystem": False})
        started = await call(client, "start_run", question="What is it?", config=config, wait_seconds=50)
        result = await call(client, "get_result", run_id=started["run_id"])
    assert (result["usage"]["cost_usd"], result["usage"]["model_calls"]) == (0.01234567, 1)
    (replied,) = [e for e in events_of(home.run_directory(started["run_id"])) if e["type"] == "model_replied"]
    uncached = {"bound": None, "saved_usd": 0.0, "discounted_tokens": 0}
    assert replied["cost"] == {"usd": 0.01234567, "source": "provider", **uncached}
    assert replied["model"] == "some/model-served"
    assert replied["seconds"] > 0
