"""How a server of Chat Completions answers AG2, and how a config writes an AG2 agent."""

import json
from typing import Any

from tests.raw_double import reply, sse

KEY = "sk-secret-0123456789"
ENVIRON = {"MY_KEY": KEY, "OPENAI_API_KEY": "sk-of-somebody-else"}
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 60},
    "completion_tokens_details": {"reasoning_tokens": 5},
}


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m-2", "choices": [choice], **more}


def call(name: str, arguments: str, index: int = 0) -> dict[str, Any]:
    return {"index": index, "id": f"call_{index}", "function": {"name": name, "arguments": arguments}}


def said(*deltas: dict[str, Any], finish: str = "stop") -> bytes:
    usage: dict[str, Any] = {**chunk({}), "choices": [], "usage": USAGE}
    return reply(sse(*(chunk(delta) for delta in deltas), chunk({}, finish), usage, "[DONE]"))


def used(name: str, **arguments: Any) -> bytes:
    return said({"tool_calls": [call(name, json.dumps(arguments))]}, finish="tool_calls")


def refused(status: str, **error: Any) -> bytes:
    body = json.dumps({"error": {"message": f"no, with {KEY}", **error}}).encode()
    return reply(body, status=status, media_type="application/json")


def section(url: str | None = None, **settings: Any) -> dict[str, Any]:
    """A backend as a config has it; `settings` are of `llm_config`."""
    model: dict[str, Any] = {"api_type": "openai", "model": "gpt-5", **settings}
    if url is not None:
        model |= {"base_url": f"{url}/v1", "api_key_env": "MY_KEY"}
    agent = {"type": "assistant", "name": "AG2_coder", "system_message": "You are a coder.", "llm_config": model}
    return {"type": "ag2", "agent_config": agent}
