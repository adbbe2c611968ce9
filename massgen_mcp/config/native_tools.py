"""Tools that a provider runs on its own machines, by backend type: what `enable_*` may ask for.

Must not know how they are asked for; that is the wires' business.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

NativeTool = Literal["web_search", "code_execution", "code_interpreter"]

NATIVE_TOOLS: Mapping[str, tuple[NativeTool, ...]] = MappingProxyType(
    {
        "openai": ("web_search", "code_interpreter"),
        "claude": ("web_search", "code_execution"),
        "openrouter": ("web_search",),
    }
)
"""Every other type has none on the wire that is used here."""


def native_tools_of(backend_type: str) -> tuple[NativeTool, ...]:
    return NATIVE_TOOLS.get(backend_type, ())


def refusal(backend_type: str, flag: str) -> str | None:
    """Why a backend of this type cannot have the flag `enable_TOOL`; None when it can."""
    flags = [f"enable_{tool}" for tool in native_tools_of(backend_type)]
    if flag in flags:
        return None
    has = f"only {' and '.join(flags)}" if flags else "no tools of its own here"
    return f"{backend_type} does not offer this; it has {has}"
