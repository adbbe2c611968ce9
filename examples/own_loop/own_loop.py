"""An agent with a loop of its own, as a member: a clerk who knows beforehand what to do.

`pip install examples/own_loop`, then `type: clerk` in a config.
"""

import json
import uuid
from collections.abc import Iterator, Mapping

import anyio
from pydantic import BaseModel

from massgen_mcp.backends.adapter import Adapter, Situation
from massgen_mcp.backends.base import ModelRequest, StopPart, TextPart, ToolCall, UsagePart
from massgen_mcp.backends.own_loop import Desk
from massgen_mcp.errors import BackendError, DropReason

FAULTS: dict[str, DropReason] = {
    "auth": "auth",
    "rate_limited": "rate_limited",
    "unreachable": "unreachable",
    "crashes": "provider_error",
}


class ClerkConfig(BaseModel, extra="forbid"):
    model: str = "clerk"
    answer: str = "It is noted."
    writes: dict[str, str] = {}
    """Files, by their path."""
    plays: Situation = "answers"


def to_do(config: ClerkConfig) -> Iterator[tuple[str, object]]:
    yield "look_up", {"word": "moon"}
    for path, text in config.writes.items():
        yield "write_file", {"path": path, "content": text}
    yield "vote", {"reason": "It is in order.", "agent_id": "agent1", "same_as": []}
    yield "new_answer", {"content": config.answer}


class Clerk:
    own_words = False

    def __init__(self, config: ClerkConfig) -> None:
        self.model, self._config = config.model, config

    async def work(self, task: ModelRequest, desk: Desk) -> None:
        plays = self._config.plays
        if plays in FAULTS:
            raise BackendError(FAULTS[plays], f"the clerk {plays}")
        if plays == "hangs":
            await anyio.sleep_forever()
        heard = len(task.system)
        for name, arguments in to_do(self._config):
            if name in {tool.name for tool in desk.tools}:
                desk.say(UsagePart(input_tokens=heard, output_tokens=len(name), at_least=True))
                (result,) = await desk.use(ToolCall(uuid.uuid4().hex, name, json.dumps(arguments)))
                heard += len(result.text)  # the verdict; an action that is accepted has none, and ends the work
        desk.say(TextPart(self._config.answer))
        desk.say(UsagePart(input_tokens=heard, output_tokens=len(self._config.answer)))
        await desk.news(StopPart("refusal" if plays == "refuses" else "end"))

    async def aclose(self) -> None:
        pass  # nothing is open


class ClerkType(Adapter[ClerkConfig]):
    config = ClerkConfig

    def make(self, config: ClerkConfig, environ: Mapping[str, str]) -> Clerk:
        del environ
        return Clerk(config)

    def rehearse(self, situation: Situation) -> ClerkConfig:
        return ClerkConfig(plays=situation)


CLERK = ClerkType()
