"""Models of a known accuracy behind a real server: dice say on which items each of them is right.

Asked within a team, such a model gives its answer, and then votes for it and calls equal answers the same. All wrong
answers are equal, so a team of three is right exactly where two of it are.
"""

import json
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from massgen_mcp.evaluation.tasks import Item
from massgen_mcp.markers import materials
from tests.harness import TempHome
from tests.raw_double import RawDouble, Seen, answering, reply, sse

PRICE = {"input_usd_per_million": 10, "output_usd_per_million": 10}
INPUT, OUTPUT = 900, 100
"""Tokens of each call; a call costs a cent."""
WRONG = "ANSWER: something else"
NO_LIST = reply(b"", status="404 Not Found")


@dataclass
class Dice:
    """`fails`: ids of items on which every call of the model fails. `luck`: it throws anew each time it is asked;
    `keyless`: its key is wrong.
    """

    right: float
    fails: Sequence[str] = ()
    luck: bool = False
    keyless: bool = False
    thrown: Counter[str] = field(default_factory=Counter[str])

    def is_right(self, model: str, item: Item, time: int = 0) -> bool:
        return Random(f"{model}/{item.id}/{time if self.luck else 0}").random() < self.right

    def answer(self, model: str, item: Item) -> str:
        right = self.is_right(model, item, self.thrown[item.id])
        self.thrown[item.id] += 1
        if item.tests:
            return f"```python\n{item.target if right else 'def nothing(): ...'}\n```"
        return f"ANSWER: {item.targets[0]}" if right else WRONG


@asynccontextmanager
async def dicing(items: Sequence[Item], models: Mapping[str, Dice]) -> AsyncGenerator[RawDouble]:
    """A server with these models, for these items."""

    def respond(seen: Seen, number: int) -> bytes:
        model = seen.body["model"]
        dice = models[model]
        texts = "\n".join(str(message.get("content")) for message in seen.body["messages"])
        item = next(item for item in items if item.input in texts)
        if dice.keyless:
            return reply(b'{"error": {"message": "no"}}', status="401 Unauthorized", media_type="application/json")
        if item.id in dice.fails:
            return reply(b'{"error": {"message": "no"}}', status="400 Bad Request", media_type="application/json")
        tools = {tool["function"]["name"] for tool in seen.body.get("tools", ())}
        ballot = [one for one in materials(texts) if one.kind == "answer"]
        own = next((one for one in ballot if one.yours), None)
        if "vote" in tools and own is not None:
            same = list({one.name for one in ballot if one.text == own.text and one.name != own.name})
            return _called(number, "vote", {"agent_id": own.name, "reason": "It is mine.", "same_as": same})
        if "new_answer" in tools:
            return _called(number, "new_answer", {"content": dice.answer(model, item)})
        return _told(dice.answer(model, item), streamed=bool(seen.body.get("stream")))

    async with answering(respond, lambda seen: NO_LIST if seen.head.startswith("GET ") else None) as double:
        yield double


def team(home: TempHome, double: RawDouble, name: str, *models: str, cents: int = 1, **more: Any) -> str:
    """The path of a config of these models. `cents`: what a call costs."""
    price = {key: cents * each for key, each in PRICE.items()}
    backend = {"type": "chatcompletion", "base_url": f"{double.url}/v1", "price": price}
    agents = [{"id": f"agent_{place}", "backend": {**backend, "model": model}} for place, model in enumerate(models)]
    return home.config(name, *agents, **more)


def _called(number: int, tool: str, arguments: dict[str, Any]) -> bytes:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    return _streamed({"role": "assistant", "tool_calls": [call]}, "tool_calls")


def _told(text: str, *, streamed: bool) -> bytes:
    message = {"role": "assistant", "content": text}
    if streamed:
        return _streamed(message, "stop")
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": _USAGE}
    return reply(json.dumps(body).encode(), media_type="application/json")


def _streamed(delta: dict[str, Any], reason: str) -> bytes:
    chunk: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return reply(
        sse(
            {**chunk, "choices": [{"index": 0, "delta": delta}]},
            {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {**chunk, "choices": [], "usage": _USAGE},
        )
    )


_USAGE = {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
