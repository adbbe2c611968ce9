"""MassGen's parameters of a Claude Code agent in the terms of our `claude_code` backend. Pure.

That backend offers the CLI's file tools, confined to the agent's workspace, and nothing else: no commands, no web.
What a caller forbids beyond that is forbidden already; what a caller allows or forbids within it cannot be had
piecemeal, and is refused by name.
"""

from collections.abc import Mapping
from typing import Any, cast

READING = ("Read", "Glob", "Grep")
WRITING = ("Write", "Edit")
OWN_TOOLS = (*READING, *WRITING)

THINKING_TOKENS = 8000
"""MassGen's default."""

KEYS = ("disallowed_tools", "allowed_tools", "permission_mode", "max_thinking_tokens")

_EFFORTS = ((4_000, "low"), (16_000, "medium"), (32_000, "high"))
"""Below so many thinking tokens, this effort; `xhigh` from there on."""


def translated(params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The backend section for these parameters, and what is wrong, by key.

    Lists of tools are compared with what is offered. `max_thinking_tokens` becomes a `reasoning_effort`, unless one is
    given; at MassGen's default the CLI has its own measure.
    """
    backend = {key: value for key, value in params.items() if key not in KEYS}
    problems: dict[str, str] = {}
    for key, check in (("disallowed_tools", _disallowed), ("allowed_tools", _allowed)):
        if params.get(key) is not None and (problem := check(_names(params[key]))):
            problems[key] = problem
    tokens = params.get("max_thinking_tokens", THINKING_TOKENS)
    if tokens is None:
        return backend, problems
    if not isinstance(tokens, int) or tokens < 0:
        problems["max_thinking_tokens"] = "expected a number of tokens"
    elif tokens != THINKING_TOKENS:
        backend.setdefault("reasoning_effort", next((effort for below, effort in _EFFORTS if tokens < below), "xhigh"))
    return backend, problems


def _disallowed(tools: list[str] | None) -> str | None:
    if tools is None:
        return "expected a list of tools"
    if own := sorted(set(tools) & set(OWN_TOOLS)):
        return (
            f"{', '.join(own)}: the file tools come together; they reach nothing outside the agent's workspace. To go "
            "without files set orchestrator.enable_filesystem to false in the config"
        )
    return None


def _allowed(tools: list[str] | None) -> str | None:
    offered = f"Claude Code has exactly {', '.join(OWN_TOOLS)} here, within its workspace; leave the list out"
    if tools is None:
        return "expected a list of tools"
    if beyond := sorted(set(tools) - set(OWN_TOOLS)):
        return f"{', '.join(beyond)}: not available. {offered}"
    if lacking := sorted(set(OWN_TOOLS) - set(tools)):
        return f"{', '.join(lacking)}: cannot be taken away. {offered}"
    return None


def _names(patterns: object) -> list[str] | None:
    """`Bash` of `Bash(rm*)`; None for what is no list."""
    if not isinstance(patterns, list | tuple):
        return None
    return [str(pattern).partition("(")[0].strip() for pattern in cast("list[object]", patterns)]
