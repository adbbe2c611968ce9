"""MassGen's parameters of a Claude Code agent in the terms of our `claude_code` backend. Pure.

That agent has the team's tools in place of the CLI's own: files in its workspace, commands in the sandbox where `Bash`
is allowed, no web. What a caller forbids beyond that is forbidden already; what cannot be had piecemeal is refused by
name.
"""

from collections.abc import Mapping
from typing import Any, cast

BASH = "Bash"
FILES = ("Read", "Glob", "Grep", "Write", "Edit")
"""The CLI's names for what the team's file tools do."""
WITHOUT = ("LS", "WebSearch")
"""What it has elsewhere: the team's file tools list directories, and nothing searches the web."""

THINKING_TOKENS = 8000
"""MassGen's default."""
_EFFORTS = ((4_000, "low"), (16_000, "medium"), (32_000, "high"))
"""Below so many thinking tokens, this effort; `xhigh` from there on."""

KEYS = ("disallowed_tools", "allowed_tools", "permission_mode")
"""What has no place in our backend."""

_COME_TOGETHER = "an agent gets all file tools or none, and they work only in its workspace"


def translated(params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The backend section for these parameters, and what is wrong, by key.

    `Bash` is allowed where `allowed_tools` names it, or where `disallowed_tools` forbids only some of its commands:
    then the section has `commands: true`. `max_thinking_tokens` also becomes a `reasoning_effort`, unless one is given,
    because newer models think by effort; at MassGen's default the CLI has its own measure.
    """
    backend = {key: value for key, value in params.items() if key not in KEYS}
    tokens = backend.get("max_thinking_tokens")
    if tokens == THINKING_TOKENS:
        del backend["max_thinking_tokens"]
    elif isinstance(tokens, int):
        backend.setdefault("reasoning_effort", next((effort for below, effort in _EFFORTS if tokens < below), "xhigh"))
    allowed, disallowed = _patterns(params.get("allowed_tools")), _patterns(params.get("disallowed_tools"))
    problems: dict[str, str] = {}
    for key, patterns, check in (("allowed_tools", allowed, _allowed), ("disallowed_tools", disallowed, _disallowed)):
        if params.get(key) is None:
            continue
        if problem := check(patterns) if patterns is not None else "expected a list of tools":
            problems[key] = problem
    commands = _commands(allowed, disallowed or [])
    if commands is not None:
        backend.setdefault("commands", commands)
    return backend, problems


def _commands(allowed: list[str] | None, disallowed: list[str]) -> bool | None:
    if BASH in disallowed:
        return False
    if allowed is not None:
        return any(_tool_name(pattern) == BASH for pattern in allowed)
    return True if any(_tool_name(pattern) == BASH for pattern in disallowed) else None


def _disallowed(patterns: list[str]) -> str | None:
    if own := sorted({_tool_name(pattern) for pattern in patterns}.intersection(FILES)):
        return (
            f"{', '.join(own)}: {_COME_TOGETHER}. For an agent without files, set orchestrator.enable_filesystem "
            "to false"
        )
    return None


def _allowed(patterns: list[str]) -> str | None:
    names = {_tool_name(pattern) for pattern in patterns}
    offered = f"massgen gives Claude Code {', '.join(FILES)} and {BASH}"
    if beyond := sorted(names.difference(FILES, WITHOUT, (BASH,))):
        return f"{', '.join(beyond)}: not available; {offered}"
    if BASH not in names and (lacking := sorted(set(FILES) - names)):
        return f"{', '.join(lacking)}: {_COME_TOGETHER}. Remove the list: {offered}"
    return None


def _patterns(given: object) -> list[str] | None:
    """None for what is no list."""
    if not isinstance(given, list | tuple):
        return None
    return [str(pattern).strip() for pattern in cast("list[object]", given)]


def _tool_name(pattern: str) -> str:
    """`Bash` of `Bash(rm*)`."""
    return pattern.partition("(")[0].strip()
