"""Whether the directories that a run may change lie apart."""

import os
from contextlib import suppress
from itertools import combinations
from pathlib import Path

from massgen_mcp.config.diagnostics import show_name
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError


def require_apart(config: Config) -> None:
    """Agents have a copy of each directory, so one that lies in another one would be changed twice, and differently.
    Raises `MassgenError` invalid_arguments.
    """
    given = [context.path for context in config.orchestrator.context_paths if context.permission == "write"]
    for one, other in combinations(given, 2):
        around_one, around_other = _holds(other, one), _holds(one, other)
        if not (around_one or around_other):
            continue
        outer, inner = (other, one) if around_one else (one, other)
        where = "is the same as" if around_one and around_other else "lies in"
        message = f"{show_name(inner)} {where} {show_name(outer)}, and both are given with permission write"
        raise MassgenError("invalid_arguments", f"context_paths: {message}; give {show_name(outer)} alone")


def _holds(outer: str, inner: str) -> bool:
    """Whether one is the other or lies in it, whatever names and links lead there."""
    with suppress(OSError, RuntimeError):  # of what is not there any more
        real, wanted = Path(inner).resolve(), Path(outer).stat()
        return any(os.path.samestat(wanted, place.stat()) for place in (real, *real.parents))
    return False
