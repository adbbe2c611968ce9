"""Adapters: members of the team that come in packages of their own, found by the entry points of what is installed.

Nothing is imported before a config names it. What lies in the directory where a program is started is not installed,
and is passed over: a repository cannot bring an adapter along.
"""

import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, distributions

MEMBERS, TOOLS = "massgen_mcp.members", "massgen_mcp.tools"
"""Groups of entry points."""


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


def loaded(entry: EntryPoint) -> object:
    """What it names. Raises `ValueError` in one line, whatever goes wrong in somebody else's package."""
    try:
        return entry.load()
    except Exception as error:
        raise ValueError(f"cannot load {entry.name} of {where_from(entry)}: {error!r}"[:500]) from error
