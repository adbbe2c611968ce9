"""Looks at a run whenever there is something new in it, for whoever waits for that."""

from collections.abc import AsyncGenerator, Awaitable, Callable

import anyio

from massgen_mcp.runs.engine import Liveness
from massgen_mcp.runs.view.run_view import RunView

LOOK_SECONDS = (0.25, 1.0)
"""How often a run is looked at of which nobody tells news: at first, and at most."""
SAFETY_SECONDS = 30.0
"""After so long a run is looked at even if nothing was told of it."""


async def looks(
    view: RunView, look: Callable[[str], Awaitable[RunView]], liveness: Liveness, *, milestones: bool = False
) -> AsyncGenerator[RunView]:
    """The run as `look` finds it now, and again whenever there is something new: with `milestones` only when its state
    or phase may have changed. Costs nothing in between, as long as whoever executes the run tells news.
    """
    pause, longest = LOOK_SECONDS
    while True:
        where = (view.row.foreground, view.row.fingerprint)
        changed = False
        with liveness.following(view.row, view.directory, milestones=milestones) as follower:
            while follower is not None and where == (view.row.foreground, view.row.fingerprint):
                changed = True
                with anyio.move_on_after(SAFETY_SECONDS):
                    changed = await follower.changed()
                view = await look(view.row.run_id)
                yield view
                if not changed:
                    break
                pause = LOOK_SECONDS[0]
        if not changed:
            await anyio.sleep(pause)
            pause = min(longest, 2 * pause)
            view = await look(view.row.run_id)
            yield view
