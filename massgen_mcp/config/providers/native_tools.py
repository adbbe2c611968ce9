"""Tools that a provider runs on its own machines, by backend type: what `enable_*` may ask for.

Must not know how they are asked for; that is the wires' business.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

NativeTool = Literal["web_search", "x_search", "code_execution", "code_interpreter"]

NATIVE_TOOLS: Mapping[str, tuple[NativeTool, ...]] = MappingProxyType(
    {
        "openai": ("web_search", "code_interpreter"),
        "claude": ("web_search", "code_execution"),
        "gemini": ("web_search", "code_execution"),
        "grok": ("web_search", "x_search", "code_interpreter"),
        "openrouter": ("web_search",),
    }
)
"""Every other type has none on the wire that is used here."""

BY_HOST = "chatcompletion"
"""The type whose tools are those of whoever is at its address (`providers.tools_at`)."""


def native_tools_of(backend_type: str) -> tuple[NativeTool, ...]:
    return NATIVE_TOOLS.get(backend_type, ())


def refusal(backend_type: str, flag: str) -> str | None:
    """Why a backend of this type cannot have the flag `enable_TOOL`, wherever it is; None when it can."""
    if backend_type == BY_HOST:
        return None
    flags = [f"enable_{tool}" for tool in native_tools_of(backend_type)]
    if flag in flags:
        return None
    return f"{backend_type} does not offer this; it has {flags_text(flags)}"


def flags_text(flags: list[str]) -> str:
    """What is offered, in words."""
    return f"only {' and '.join(flags)}" if flags else "no tools of its own here"
