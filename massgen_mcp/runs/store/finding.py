"""Which run somebody means who writes the beginning of its id."""

from massgen_mcp.errors import MassgenError
from massgen_mcp.nearest import nearest
from massgen_mcp.request.question import is_unicode
from massgen_mcp.runs.engine import RUN_ID_PREFIX, RunIndex, unknown_run

LEAST_TO_CHANGE = 4
"""Characters of the id of a run with which something is done, so that no slip of the keyboard does it."""
NEAREST_OF = 1000
"""Runs among which one is looked for whose id was mistyped."""


def find_run(index: RunIndex, beginning: str, *, to_change: bool = False) -> str:
    """The id of the one run whose id begins so, `run-` put before it or not. Raises `MassgenError` unknown_run with the
    nearest one, and for too short a beginning of one that is `to_change`.
    """
    if not is_unicode(beginning):
        raise unknown_run(beginning)
    prefix = beginning if beginning.startswith(RUN_ID_PREFIX) else f"{RUN_ID_PREFIX}{beginning}"
    if to_change and len(prefix.removeprefix(RUN_ID_PREFIX)) < LEAST_TO_CHANGE:
        message = f"{beginning[:80]!r} is too short: to change a run, give at least {LEAST_TO_CHANGE} characters"
        raise MassgenError("unknown_run", f"{message} of the id; `massgen runs` lists the ids")
    found = index.find_by_prefix(prefix, 2) if beginning else []
    if len(found) == 1 or prefix in found:
        return found[0] if len(found) == 1 else prefix
    if found:
        raise MassgenError("unknown_run", f"several run ids start with {beginning[:80]!r}; give more characters")
    near = _nearest(index, prefix.removeprefix(RUN_ID_PREFIX))
    hint = f"did you mean {near}? " if near else ""
    raise MassgenError("unknown_run", f"there is no run {beginning[:80]!r}; {hint}`massgen runs` lists all runs")


def _nearest(index: RunIndex, beginning: str) -> str | None:
    """The id of the newest run whose id begins nearly so."""
    rows = index.list_recent(limit=NEAREST_OF)
    beginnings = {row.run_id.removeprefix(RUN_ID_PREFIX)[: len(beginning)]: row.run_id for row in reversed(rows)}
    return beginnings.get(nearest(beginning, beginnings) or "")
