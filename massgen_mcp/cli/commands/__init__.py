"""The verbs, by the groups of the help, in its order. A group is a module, and `VERBS` there has its verbs."""

from collections.abc import Mapping
from copy import copy
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from massgen_mcp.cli.verb import Verb

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ask": ("ask", "start", "batch", "review", "eval", "init"),
        "look": ("runs", "status", "watch", "wait", "result", "stats"),
        "decide": ("apply", "answer", "raise-budget", "mark", "resume", "cancel"),
        "set up": ("doctor", "validate", "configs", "install", "uninstall", "demo"),
        "operate": ("serve", "web", "acp", "export", "import", "prune", "prices", "audit"),
        "rarely": ("worker", "store", "check-adapter", "hook", "help"),
    }
)
_OF_THEIR_OWN: Mapping[str, str] = MappingProxyType(
    {"review": "massgen_mcp.cli.massgen.reviewing.options", "eval": "massgen_mcp.cli.massgen.evaluate_options"}
)
"""Modules of verbs with many arguments that a question needs none of."""
NAMES = tuple(name for names in GROUPS.values() for name in names)


def load_verb(name: str) -> "Verb":
    group = next(group for group, names in GROUPS.items() if name in names)
    module = import_module(_OF_THEIR_OWN.get(name) or f"{__name__}.{group.replace(' ', '_')}")
    verb: Verb = next(verb for verb in module.VERBS if verb.name == name)
    return copy(verb)  # options may change it
