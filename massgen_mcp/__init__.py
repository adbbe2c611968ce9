"""Delegate a hard question to a team of LLM agents that answer, read each other's answers and vote.

Importing this package is cheap on purpose: no provider SDK, no server, no third-party import happens here. A public
name is imported from its module when it is first used; the table below says where each one lives.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from massgen_mcp.errors import MassgenError

__version__ = "0.1.0"

__all__ = [
    "MassgenError",
    "__version__",
]

_HOMES = {
    "MassgenError": "massgen_mcp.errors",
}
"""Public name → the module that defines it. A name stands here, in `__all__` and in the imports for type checkers."""


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value  # the next look-up no longer comes here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
