"""A team behind a real address that answers, votes and presents at once, and what it was told to do."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from massgen_mcp.config.loader import config_from_data
from tests.raw_double import Seen, answering, reply, sse
from tests.teams import Ended, run_team


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


class Model:
    """Answers, votes for agent1, presents; keeps the system messages and the tasks it got, by what it was asked for."""

    def __init__(self) -> None:
        self.systems: defaultdict[str, list[str]] = defaultdict(list)
        self.tasks: defaultdict[str, list[str]] = defaultdict(list)

    def respond(self, seen: Seen, number: int) -> bytes:
        offered = {tool["function"]["name"] for tool in seen.body.get("tools", [])}
        asked = "vote" if "vote" in offered else "new_answer" if "new_answer" in offered else "present"
        system, _, task, *_ = (message["content"] for message in seen.body["messages"])
        self.systems[asked].append(system)
        self.tasks[asked].append(task)
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
