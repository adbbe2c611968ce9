"""A member of your own: a poet who calls nobody. `pip install examples/own_member`, then `type: poet` in a config."""

import json
from collections.abc import AsyncGenerator, Mapping

import anyio
from pydantic import BaseModel

from massgen_mcp.backends.adapter import Adapter, Situation
from massgen_mcp.backends.base import ModelRequest, Part, StopPart, TextPart, ToolCall, ToolCallPart, UsagePart
from massgen_mcp.errors import BackendError, DropReason

FAULTS: dict[str, DropReason] = {
    "wrong key": "auth",
    "too often": "rate_limited",
    "no line": "unreachable",
    "struck dumb": "provider_error",
}


class PoetConfig(BaseModel, extra="forbid"):
    model: str = "haiku"
    mood: str = "glad"


class Poet:
    def __init__(self, config: PoetConfig) -> None:
        self.model, self.mood = config.model, config.mood

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        if self.mood in FAULTS:
            raise BackendError(FAULTS[self.mood], f"the poet: {self.mood}")
        if self.mood == "asleep":
            await anyio.sleep_forever()
        poem = f"A {self.model} in a {self.mood} mood"
        known = {"vote": {"reason": "It rhymes.", "agent_id": "agent1"}, "new_answer": {"content": poem}}
        known["look_up"] = {"word": "moon"}
        offered = {tool.name for tool in request.tools}
        called = next((name for name in known if name in offered), None)
        if called is not None:
            yield ToolCallPart(ToolCall("call_1", called, json.dumps(known[called])))
        else:
            yield TextPart(poem)
        yield UsagePart(input_tokens=len(request.system), output_tokens=len(poem))
        yield StopPart("refusal" if self.mood == "proud" else "tool_calls" if called else "end")

    async def aclose(self) -> None:
        pass  # nothing is open


MOODS: dict[Situation, str] = {
    "answers": "glad",
    "calls": "glad",
    "refuses": "proud",
    "hangs": "asleep",
    "crashes": "struck dumb",
    "auth": "wrong key",
    "rate_limited": "too often",
    "unreachable": "no line",
}


def make(config: PoetConfig, _environ: Mapping[str, str]) -> Poet:
    return Poet(config)


POET = Adapter(config=PoetConfig, make=make, rehearse=lambda situation: PoetConfig(mood=MOODS[situation]))
