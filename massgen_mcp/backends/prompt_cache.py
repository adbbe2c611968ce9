"""The parts of a request that ask a provider to keep its beginning in a prompt cache. Pure.

A cache serves the longest beginning that it has seen before, byte for byte: tools, instructions, then messages. Some
providers look for it by themselves, others only where a request is marked:

- Anthropic, and Claude and Gemini at OpenRouter: up to four marks, each looks back over 20 blocks at most.
  https://platform.claude.com/docs/en/build-with-claude/prompt-caching
- OpenAI and Azure: by themselves, on the machine that `prompt_cache_key` leads to; from GPT-5.6 on a write is charged,
  and a beginning that others share has to be marked. https://developers.openai.com/api/docs/guides/prompt-caching
- xAI: by itself, with the same key on its Responses API.
"""

import hashlib
import re
from typing import Literal

from massgen_mcp.backends.base import WORKFLOW_TOOLS, AssistantMessage, JsonObject, JsonValue, ModelRequest, ToolSpec
from massgen_mcp.backends.http import Endpoint
from massgen_mcp.config.providers.addresses import host_in

CacheForm = Literal["marks", "key", "key_and_breakpoints"]
"""The way to ask a provider: by marks in the content, by a key, or by both."""

_KEYED_HOSTS = frozenset({"api.openai.com", "api.x.ai"})
_AZURE = (".openai.azure.com", ".services.ai.azure.com")
_MARKED_AT_OPENROUTER = ("anthropic/", "~anthropic/", "google/gemini")
_VERSION = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_FIRST_WITH_BREAKPOINTS = (5, 6)
_FIRST_WITH_ALLOWED_TOOLS = (5, 0)
MAX_MARKS = 4
"""Of a request, one of them at the system message."""
LOOKBACK = 20
"""Blocks that a mark looks back over."""
MARK: JsonObject = {"type": "ephemeral"}
LONG_MARK: JsonObject = {"type": "ephemeral", "ttl": "1h"}
"""Lives longer than 5 minutes; writing costs twice the price of other input in place of 1.25 times."""
BREAKPOINT: JsonObject = {"mode": "explicit"}
ONLY_BREAKPOINTS: JsonObject = {"mode": "explicit"}
"""Nothing is written to the cache but what ends with a breakpoint."""


def choose_cache_form(endpoint: Endpoint) -> CacheForm | None:
    """Say by which form a server of OpenAI's APIs is asked. None: it may refuse what it does not know."""
    host = host_in(endpoint.base_url or "https://api.openai.com")
    if host == "openrouter.ai" and endpoint.model.startswith(_MARKED_AT_OPENROUTER):
        return "marks"
    if host == "api.openai.com" and _parse_version(endpoint.model) >= _FIRST_WITH_BREAKPOINTS:
        return "key_and_breakpoints"
    if host in _KEYED_HOSTS or host.endswith(_AZURE):
        return "key"
    return None


def make_cache_key(endpoint: Endpoint, request: ModelRequest) -> str:
    """One key for each run and model: short, and without any name in it."""
    return hashlib.sha256(f"{request.cache_scope}\n{endpoint.model}".encode()).hexdigest()[:32]


def make_cache_fields(endpoint: Endpoint, request: ModelRequest) -> JsonObject:
    """Return the fields of a body of Chat Completions that ask for the cache without marks in its messages, for a
    client that builds these itself. OpenRouter puts the mark of a whole request to Claude at its end.
    """
    match choose_cache_form(endpoint):
        case "marks" if not endpoint.model.startswith("google/"):
            return {"cache_control": {**MARK}}
        case "key" | "key_and_breakpoints" if request.cache_scope and not endpoint.of_xai:
            return {"prompt_cache_key": make_cache_key(endpoint, request)}
        case _:
            return {}


def select_tools(endpoint: Endpoint, request: ModelRequest) -> tuple[ToolSpec, ...]:
    """The tools that a request to such a server lists: where a cache is asked for, always the same ones."""
    form = choose_cache_form(endpoint)
    if form == "marks" or (form is not None and _can_narrow(endpoint)):
        return request.all_tools
    return request.tools


def is_narrowed(endpoint: Endpoint, request: ModelRequest) -> bool:
    """Tell whether the request lists tools that may not be called now, at a server that can be told so."""
    return choose_cache_form(endpoint) != "marks" and select_tools(endpoint, request) != request.tools


def has_next_step(request: ModelRequest) -> bool:
    """Tell whether a request will probably begin with all of this one: without tools a reply ends the round."""
    ordinary = (tool.name not in WORKFLOW_TOOLS for tool in request.all_tools)
    return not request.shared_ends or any(ordinary)


def find_marked_messages(request: ModelRequest) -> tuple[int, ...]:
    """The places of the messages that end a part which is asked for again: what agents share, the request before this
    one, and this one.
    """
    last = len(request.messages) - 1
    if not has_next_step(request):
        return tuple(place for place in request.shared_ends if place <= last)
    replies = [place for place, message in enumerate(request.messages) if isinstance(message, AssistantMessage)]
    before = (place - 1 for place in replies[-1:])
    ends = {*request.shared_ends, *before, last}
    return tuple(sorted(place for place in ends if 0 <= place <= last))


def add_mark(part: JsonValue, mark: JsonObject) -> JsonValue:
    """A block of content as the end of what is kept."""
    if mark and isinstance(part, dict):
        return {**part, "cache_control": {**mark}}
    return part


def mark_text(text: JsonValue) -> JsonValue:
    """The content of a message of Chat Completions, in the form that can carry a mark."""
    if isinstance(text, str) and text:
        return [add_mark({"type": "text", "text": text}, MARK)]
    return text


def _can_narrow(endpoint: Endpoint) -> bool:
    """Tell whether a request can list more tools than may be called."""
    at_openai = host_in(endpoint.base_url or "https://api.openai.com") == "api.openai.com"
    return at_openai and _parse_version(endpoint.model) >= _FIRST_WITH_ALLOWED_TOOLS


def _parse_version(model: str) -> tuple[int, int]:
    found = _VERSION.match(model)
    if found is None:
        return (0, 0)
    return (int(found[1]), int(found[2] or 0))
