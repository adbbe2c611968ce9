"""The backend sections behind `AgentConfig`'s factories, as plain dictionaries.

Knows the backend types and their tools, and makes no config of them.
"""

from typing import Any

from massgen_mcp.config.providers.catalog import named_provider
from massgen_mcp.config.providers.native_tools import BY_HOST, NativeTool, native_tools_of
from massgen_mcp.errors import MassgenError

CLAUDE_CODE = "claude_code"
DEFAULT_MODELS = ("gpt-4o", "gpt-4o-mini")
"""Of the factories per kind of task, whatever their backend."""

DISALLOWED_TOOLS = ("Bash(rm*)", "Bash(sudo*)", "Bash(su*)", "Bash(chmod*)", "Bash(chown*)")
"""What a Claude Code agent may not do unless its config says otherwise."""


def section(backend_type: str, model: str | None, extra: dict[str, object], **settings: object) -> dict[str, Any]:
    """A backend section. Settings that are None or False are at their default and left out, as is a model of None.

    Raises `MassgenError("invalid_arguments")` when `extra` sets what the factory itself decides.
    """
    own = {"type": backend_type, "model": model, **settings}
    if taken := sorted(own.keys() & extra.keys()):
        raise MassgenError("invalid_arguments", f"{', '.join(taken)}: set by this factory, not a further parameter")
    return {**{key: value for key, value in own.items() if value is not None and value is not False}, **extra}


def with_tool(backend: str, model: str, *wanted: NativeTool) -> dict[str, Any]:
    """A section with the first of the wanted tools that the backend has.

    Raises `MassgenError("config_invalid")` if it has none of them, or if there is no such backend.
    """
    backend_type = type_of(backend)
    # Without an address of its own the compatible type is at OpenAI.
    offered = native_tools_of("openai" if backend_type == BY_HOST else backend_type)
    tool = next((tool for tool in wanted if tool in offered), None)
    if tool is None:
        flags = " or ".join(f"enable_{name}" for name in wanted)
        raise MassgenError("config_invalid", f"{backend_type} offers no {flags} here; take another backend")
    return section(backend_type, _model_of(backend_type, model), {}, **{f"enable_{tool}": True})


def plain(backend: str, model: str) -> dict[str, Any]:
    """A section without tools. Raises `MassgenError("config_invalid")` if there is no such backend."""
    backend_type = type_of(backend)
    return section(backend_type, _model_of(backend_type, model), {})


def _model_of(backend_type: str, model: str) -> str:
    """The presets' default models are OpenAI's; another company that has only its own gives its strong one for them."""
    if model not in DEFAULT_MODELS or backend_type in (CLAUDE_CODE, "openai"):
        return model
    return named_provider(backend_type).strong_model or model


def type_of(backend: str) -> str:
    """The backend type of this name or alias. Raises `MassgenError("config_invalid")` with the nearest name."""
    return CLAUDE_CODE if backend == CLAUDE_CODE else named_provider(backend).type


def expertise(domain: str, level: str) -> str:
    """Instructions for an agent that answers within one field."""
    return (
        f"Your field is {domain}, and you work in it as a {level}. Use its terms and methods precisely, rest claims on "
        "what the field has established, and say where it disagrees or does not know."
    )
