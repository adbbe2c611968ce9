"""MassGen's parameters of a Claude Code agent in the terms of our `claude_code` backend. Pure.

That backend offers the CLI's file tools, confined to the agent's workspace, and nothing else: no commands, no web.
What a caller forbids beyond that is forbidden already; what a caller allows or forbids within it cannot be had
piecemeal, and is refused by name.
"""

from typing import Any, cast

from massgen_mcp.agents.presets import THINKING_TOKENS
from massgen_mcp.agents.settings import UnsupportedSettingError
from massgen_mcp.backends.frameworks.claude_code_rules import READING, WRITING

OWN_TOOLS = (*READING, *WRITING)

_EFFORTS = ((4_000, "low"), (16_000, "medium"), (32_000, "high"))
"""Below so many thinking tokens, this effort; `xhigh` from there on."""


def section(params: dict[str, Any]) -> dict[str, Any]:
    """The backend section for these parameters.

    Lists of tools are compared with what is offered. `max_thinking_tokens` becomes a `reasoning_effort`, unless one is
    given; at the factory's default the CLI has its own measure. Raises `UnsupportedSettingError`.
    """
    backend = dict(params)
    _check_disallowed(_names("disallowed_tools", backend.pop("disallowed_tools", [])))
    if "allowed_tools" in backend:
        _check_allowed(_names("allowed_tools", backend.pop("allowed_tools")))
    tokens = backend.pop("max_thinking_tokens", THINKING_TOKENS)
    if not isinstance(tokens, int) or tokens < 0:
        raise UnsupportedSettingError("max_thinking_tokens", "expected a number of tokens")
    if tokens != THINKING_TOKENS:
        effort = next((effort for below, effort in _EFFORTS if tokens < below), "xhigh")
        backend.setdefault("reasoning_effort", effort)
    return backend


def _check_disallowed(tools: list[str]) -> None:
    if own := sorted(set(tools) & set(OWN_TOOLS)):
        raise UnsupportedSettingError(
            "disallowed_tools",
            f"{', '.join(own)}: the file tools come together; they reach nothing outside the agent's workspace. To go "
            "without files set orchestrator.enable_filesystem to false in the config",
        )


def _check_allowed(tools: list[str]) -> None:
    offered = f"Claude Code has exactly {', '.join(OWN_TOOLS)} here, within its workspace; leave the list out"
    if beyond := sorted(set(tools) - set(OWN_TOOLS)):
        raise UnsupportedSettingError("allowed_tools", f"{', '.join(beyond)}: not available. {offered}")
    if lacking := sorted(set(OWN_TOOLS) - set(tools)):
        raise UnsupportedSettingError("allowed_tools", f"{', '.join(lacking)}: cannot be taken away. {offered}")


def _names(key: str, patterns: object) -> list[str]:
    """`Bash` of `Bash(rm*)`."""
    if not isinstance(patterns, list | tuple):
        raise UnsupportedSettingError(key, "expected a list of tools")
    return [str(pattern).partition("(")[0].strip() for pattern in cast("list[object]", patterns)]
