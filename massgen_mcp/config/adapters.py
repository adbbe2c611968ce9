"""Adapters: members of the team that come in packages of their own, found by the entry points of what is installed.

Nothing is imported before a config names it. What lies in the directory where a program is started is not installed,
and is passed over: a repository cannot bring an adapter along.
"""

import os
import pkgutil
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, distributions

from massgen_mcp.config.models.backends import CONFIGURED_TYPES

MEMBERS, TOOLS = "massgen_mcp.members", "massgen_mcp.tools"
"""Groups of entry points."""
OWN_TYPES = "massgen_mcp.backends.agent_types"
"""The package of our agent types, a module each."""
BY_PROVIDER = ("local_servers", "provider_models")
"""Modules of it that are chosen by the provider that a type names."""


@cache
def installed(group: str) -> Mapping[str, EntryPoint]:
    """What is installed for a group, by name. Of two with one name the first on the path of Python counts."""
    here = os.path.realpath(".")
    path = [place for place in sys.path if place and os.path.realpath(place) != here]
    found: dict[str, EntryPoint] = {}
    for distribution in distributions(path=path):
        for entry in distribution.entry_points.select(group=group):
            found.setdefault(entry.name, entry)
    return dict(sorted(found.items()))


def where_from(entry: EntryPoint) -> str:
    """The package that brings it, with its version."""
    package = entry.dist
    return f"{package.name} {package.version}" if package else entry.value


def load_entry(entry: EntryPoint) -> object:
    """Load the object of an entry point. Raises `ValueError`, in one line, for any error in the other package."""
    try:
        return entry.load()
    except Exception as error:
        raise ValueError(f"cannot load {entry.name} of {where_from(entry)}: {error!r}"[:500]) from error


@cache
def list_own_types() -> tuple[str, ...]:
    """Return the names of our agent types that are no provider's."""
    found = [module.name for module in pkgutil.iter_modules(import_module(OWN_TYPES).__path__)]
    return tuple(name for name in found if name not in BY_PROVIDER)


def is_foreign(name: str) -> bool:
    """Return whether an adapter of this name comes from another package."""
    return name not in list_own_types()


def list_adapters() -> tuple[str, ...]:
    """Return the types whose settings are read by a model of their own: ours first, then those that are installed."""
    own = [name for name in list_own_types() if name not in CONFIGURED_TYPES]
    return (*own, *filter(is_foreign, installed(MEMBERS)))
