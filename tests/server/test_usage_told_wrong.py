"""What a provider tells of a call and cannot be true, or says only half of it: unknown stays unknown, never nothing."""

import json
from functools import partial
from typing import Any

import anyio.to_thread

from massgen_mcp.runs.sessions.project import LOGS
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, events_of
from tests.raw_double import Seen, answering, reply, sse

LONG = "These notes are of no use. " * 3_000
"""About 17,000 tokens."""
PRICE = {"input_usd_per_million": 10, "output_usd_per_million": 10}
USAGES: dict[str, dict[str, Any]] = {
    "total": {"total_tokens": 357_000},
    "nothing": {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1_000, "cost": 0},
    "byok": {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1_000, "cost": 0.0007, "is_byok": True},
    "byok_null": {
        "prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1_000, "cost": 0.0007, "is_byok": True,
        "cost_details": {"upstream_inference_cost": None},
    },
    "low": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    "short": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}  # fmt: skip
"""By the key of the request: what is told of it."""


def respond(seen: Seen, _: int) -> bytes:
    usage = USAGES[seen.headers["authorization"].removeprefix("Bearer ")]
    call = {"index": 0, "id": "c1", "function": {"name": "new_answer", "arguments": '{"content": "42"}'}}
    frame = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": seen.body["model"]}
    choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    return reply(sse({**frame, "choices": [choice]}, {**frame, "choices": [], "usage": usage}, "[DONE]"))


async def test_what_is_told_wrong_or_not_at_all_counts_as_listed_or_estimated(home: TempHome) -> None:
    keys = {f"KEY_{name.upper()}": name for name in USAGES}
    async with answering(respond, lambda seen: reply(b"", status="404") if seen.head.startswith("GET") else None) as it:
        told: dict[str, dict[str, Any]] = {}
        for name, usage in USAGES.items():
            kind = {"type": "chatcompletion", "model": "m", "price": PRICE, "base_url": f"{it.url}/v1"}
            if "cost" in usage:
                kind = {"type": "openrouter", "model": "openai/gpt-5", "base_url": it.url}
            config = home.config(name, {"id": "ada", "backend": {**kind, "api_key_env": f"KEY_{name.upper()}"}})
            words = ("--automation", "--trust", "--config", config, LONG if name == "low" else "What is it?")
            done = await anyio.to_thread.run_sync(
                partial(run_command, home.with_variables(**keys), COMMAND_MODULE, *words)
            )
            assert done.returncode == 0, done.stderr
            newest = max((home.work / LOGS).glob("log_*"))
            (told[name],) = [event for event in events_of(newest) if event["type"] == "model_replied"]
    total = told["total"]
    assert total["usage"]["output_tokens"] == 357_000, json.dumps(total["usage"])
    assert total["cost"]["usd"] >= 3.57
    listed = 900 * 1.25e-6 + 100 * 10e-6
    for name in ("nothing", "byok", "byok_null"):
        assert told[name]["cost"]["source"] != "provider"
        assert told[name]["cost"]["usd"] >= listed
    assert told["low"]["usage"]["estimated"]
    assert told["low"]["usage"]["input_tokens"] > len(LONG) / 4
    assert told["low"]["cost"]["usd"] > 0.1
    assert (told["short"]["usage"]["input_tokens"], told["short"]["usage"]["estimated"]) == (3, False)
