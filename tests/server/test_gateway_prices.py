"""Behind a gateway: the money cap sees an estimate, and says that it is one."""

from typing import Any

from tests.harness import TempHome, call, events_of, expect_error
from tests.wire_double import Aimock

TOKENS = {"prompt_tokens": 1_000, "completion_tokens": 100_000, "total_tokens": 101_000}
"""Of each reply: a dollar of gpt-5's."""
MODELS = ("openai/gpt-5", "our-alias")


def team(home: TempHome, aimock: Aimock, **settings: Any) -> str:
    backend = {"type": "chatcompletion", "model": "openai/gpt-5", "base_url": f"{aimock.url}/v1", **settings}
    agents = [{"id": name, "backend": backend} for name in ("one", "two")]
    return home.config("team", *agents, budget={"max_usd": 2.5}, orchestrator={"enable_filesystem": False})


def load(aimock: Aimock) -> None:
    """Agents that never come to an end: whoever may answer anew does so. The models that rules name are those that the
    gateway has.
    """
    answer = {"name": "new_answer", "arguments": {"content": "42"}}
    vote = {"name": "vote", "arguments": {"reason": "Good.", "agent_id": "agent1"}}
    aimock.load(
        *({"match": {"model": name, "userMessage": "never"}, "response": {"content": "never"}} for name in MODELS),
        {"match": {"toolName": "vote"}, "response": {"toolCalls": [vote], "usage": TOKENS}},
        {"match": {"toolName": "new_answer"}, "response": {"toolCalls": [answer], "usage": TOKENS}},
        {"match": {}, "response": {"content": "It is 42.", "usage": TOKENS}},
    )


async def test_the_cap_stops_a_run_behind_a_gateway_and_the_result_says_that_it_is_an_estimate(
    home: TempHome, aimock: Aimock
) -> None:
    load(aimock)
    async with home.client() as client:
        config = team(home, aimock)
        planned = await call(client, "start_run", question="q", config=config, dry_run=True)
        assert "at the model makers' list prices" in planned["estimate"]
        started = await call(client, "start_run", question="q", config=config, wait_seconds=50)
        status = await call(client, "get_status", run_id=started["run_id"])
        result = await call(client, "get_result", run_id=started["run_id"])
    replies = [event for event in events_of(home.run_directory(started["run_id"])) if event["type"] == "model_replied"]
    assert {event["cost"]["source"] for event in replies} == {"estimate"}
    assert len(replies) < 5, "the whole run would have five calls"
    assert "The run reached its budget" in result["note"]
    assert f"The cost of {len(replies)} calls" in result["note"]
    assert "is an estimate: they went through a gateway" in status["note"]
    assert 1 < result["usage"]["cost_usd"] == status["spent_usd"] < 4
    assert "unpriced_calls" not in result["usage"]


async def test_price_as_makes_it_sure_per_backend_and_from_the_environment(home: TempHome, aimock: Aimock) -> None:
    load(aimock)
    async with home.client() as client:
        config = team(home, aimock, price_as="openai")
        started = await call(client, "start_run", question="q", config=config, wait_seconds=50)
        result = await call(client, "get_result", run_id=started["run_id"])
        assert "The run reached its budget" in result["note"]
        assert "estimate" not in result["note"]
    async with home.with_variables(MASSGEN_PRICE_AS="openai/gpt-5").client() as client:
        config = team(home, aimock, model="our-alias")
        started = await call(client, "start_run", question="q", config=config, wait_seconds=50)
        result = await call(client, "get_result", run_id=started["run_id"])
        assert "The run reached its budget" in result["note"]
        assert "estimate" not in result["note"]
    async with home.with_variables(MASSGEN_PRICE_AS="opnai").client() as client:
        code, message = await expect_error(client, "start_run", question="q", config=config)
        assert (code, "MASSGEN_PRICE_AS" in message, "did you mean 'openai'" in message) == (
            "config_invalid",
            True,
            True,
        )


async def test_the_scripted_team_costs_nothing(home: TempHome) -> None:
    async with home.client() as client:
        planned = await call(client, "start_run", question="q", config="scripted", dry_run=True)
        started = await call(client, "start_run", question="q", config="scripted", wait_seconds=50)
        result = await call(client, "get_result", run_id=started["run_id"])
    assert (result["usage"]["cost_usd"], "unpriced_calls" in result["usage"]) == (0, False)
    assert planned["estimate"].startswith("usually $0 to $0 ")
