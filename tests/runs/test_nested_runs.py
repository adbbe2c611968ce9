"""Agents that start runs of their own: each once, within the bounds of the run they work in, and ended with it."""

from typing import Any

from tests.harness import TempHome, agent, call, events_of

NESTED = {"max_depth": 1, "max_runs": 2, "share_of_budget": 0.5}


def delegate(question: str = "Is it so?", **arguments: Any) -> dict[str, Any]:
    return {"call": "delegate", "arguments": {"question": question, **arguments}}


WAIT: dict[str, Any] = {"call": "get_status", "arguments": {"wait_seconds": 40}}
READ: dict[str, Any] = {"call": "get_result", "arguments": {}}


def results(home: TempHome, run_id: str) -> list[str]:
    """What tools gave to the agents of a run, in order."""
    return [event["result"] for event in events_of(home.run_directory(run_id)) if event["type"] == "tool_finished"]


async def test_an_agent_delegates_waits_and_reads_the_answer_with_room_for_one_run(home: TempHome) -> None:
    home = home.with_variables(MASSGEN_MCP_MAX_RUNNING="1")
    config = home.config(
        "outer", agent("solo", delegate(config="scripted"), WAIT, READ, {"answer": "as they said"}), nested=NESTED
    )
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        waited = await call(client, "wait_run", run_id=run_id)
        print(results(home, run_id))
        for e in events_of(home.run_directory(run_id)): print(e)
        assert waited["status"] == "completed"
