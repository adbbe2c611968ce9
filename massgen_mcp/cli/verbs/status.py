"""`massgen-mcp status ID`: what a run is doing now."""

import argparse

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.run_manager import run_manager
from massgen_mcp.cli.saying import say
from massgen_mcp.cli.verbs.common import say_json
from massgen_mcp.runs.run_view import RunView
from massgen_mcp.server import results
from massgen_mcp.views.spent import spent_text


async def run(options: argparse.Namespace) -> int:
    with run_manager() as manager:
        view = await manager.look(await manager.find(options.run_id))
        if options.json:
            say_json(results.status(view))
        else:
            say_status(view)
    return EXIT_OK


def say_status(view: RunView) -> None:
    """A run in a few lines for people."""
    status = results.status(view)
    say(f"{status.run_id}: {status.status}, {status.phase}, {status.progress_percent} %, {status.elapsed_seconds} s")
    for agent in status.agents:
        say(f"  {agent}")
    say(f"  {status.model_calls} model calls, {spent_text(view.snapshot.spent)}")
    if status.reason:
        say(f"  reason: {status.reason}")
    if status.note:
        say(f"  note: {status.note}")
