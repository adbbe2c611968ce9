"""What each agent of a team is told before it answers: the date, and, where all ask one model, a perspective."""

import json
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.events.run import RunStarted
from massgen_mcp.orchestration.perspectives import PERSPECTIVES
from tests.raw_double import Seen, answering, reply, sse
from tests.teams import Ended, run_team

TRIO = ("one", "one", "one")


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


class Model:
    """Answers, votes for agent1, presents; keeps the system messages it got, by what it was asked for."""

    def __init__(self) -> None:
        self.systems: defaultdict[str, list[str]] = defaultdict(list)

    def respond(self, seen: Seen, number: int) -> bytes:
        offered = {tool["function"]["name"] for tool in seen.body.get("tools", [])}
        asked = "vote" if "vote" in offered else "new_answer" if "new_answer" in offered else "present"
        self.systems[asked].append(seen.body["messages"][0]["content"])
        if asked == "present":
            return reply(sse(chunk({"role": "assistant", "content": "All told."}), chunk({}, "stop"), "[DONE]"))
        arguments: dict[str, dict[str, Any]] = {"vote": {"reason": "right", "agent_id": "agent1", "same_as": []}}
        function = {"name": asked, "arguments": json.dumps(arguments.get(asked, {"content": f"answer {number}"}))}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        return reply(sse(chunk({"role": "assistant", "tool_calls": [call]}), chunk({}, "tool_calls"), "[DONE]"))


async def ask(
    path: Path, *models: str, system_messages: tuple[str | None, ...] = (None,) * 3, **orchestrator: Any
) -> tuple[Model, Ended]:
    model = Model()
    async with answering(model.respond) as double:
        agents = [
            {
                "id": f"a{place}",
                "backend": {"type": "chatcompletion", "model": name, "base_url": f"{double.url}/v1"},
                **({"system_message": said} if said else {}),
            }
            for place, (name, said) in enumerate(zip(models, system_messages, strict=False))
        ]
        config = config_from_data({"agents": agents, "orchestrator": orchestrator}, "test")
        ended = await run_team(path, config)
    assert ended.snapshot.state == "completed"
    return model, ended


def perspectives_in(systems: list[str]) -> list[list[str]]:
    return [[name for name, text in PERSPECTIVES.items() if text in system] for system in systems]


async def test_agents_of_one_model_answer_from_a_perspective_each_and_judge_alike(tmp_path: Path) -> None:
    model, _ = await ask(tmp_path, *TRIO)
    assert sorted(perspectives_in(model.systems["new_answer"])) == [["builder"], ["reader"], ["sceptic"]]
    assert len(set(model.systems["vote"])) == 1
    assert not any(perspectives_in([*model.systems["vote"], *model.systems["present"]]))


async def test_agents_of_different_models_get_no_perspective(tmp_path: Path) -> None:
    model, _ = await ask(tmp_path, "one", "one", "two")
    assert perspectives_in(model.systems["new_answer"]) == [[], [], []]


async def test_perspectives_can_be_switched_off(tmp_path: Path) -> None:
    model, _ = await ask(tmp_path, *TRIO, perspectives=False)
    assert perspectives_in(model.systems["new_answer"]) == [[], [], []]


async def test_an_agent_with_instructions_of_its_own_keeps_to_those(tmp_path: Path) -> None:
    model, _ = await ask(tmp_path, *TRIO, system_messages=(None, "You are a lawyer.", None))
    found = {"lawyer" in system: perspectives_in([system])[0] for system in model.systems["new_answer"]}
    assert found[True] == []
    assert found[False] != []


async def test_every_agent_is_told_the_date_of_the_run_in_every_phase(tmp_path: Path) -> None:
    model, ended = await ask(tmp_path, *TRIO)
    (began,) = [record.time for record in ended.records if isinstance(record.event, RunStarted)]
    today = f"Today is {datetime.fromtimestamp(began, UTC).date().isoformat()} (UTC)."
    assert all(today in system for systems in model.systems.values() for system in systems)
