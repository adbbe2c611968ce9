"""`massgen-mcp status ID`: what a run is doing now, and `massgen-mcp wait ID`: the same when it has ended or needs an
answer. The exit code of `wait` says which.
"""

import argparse
import math

from massgen_mcp.cli.exits import EXIT_OK, exit_of_run
from massgen_mcp.cli.massgen_mcp.verbs.common import print_json
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server import results
from massgen_mcp.views.spent import spent_text


async def run(options: argparse.Namespace) -> int:
    waits = options.verb == "wait"
    with run_service() as service:
        run_id = await service.find(options.run_id)
        if waits:
            seconds = math.inf if options.timeout is None else options.timeout
            view = await service.wait(run_id, until="terminal", seconds=seconds, cursor=None)
        else:
            view = await service.look(run_id)
        if options.json:
            print_json(results.status(view))
        else:
            _say(view)
    return exit_of_run(view) if waits else EXIT_OK


def _say(view: RunView) -> None:
    """A run in a few lines for people."""
    status = results.status(view)
    print_line(
        f"{status.run_id}: {status.status}, {status.phase}, {view.snapshot.progress} %, {status.elapsed_seconds} s"
    )
    for agent in status.agents:
        print_line(f"  {agent}")
    print_line(f"  {status.model_calls} model calls, {spent_text(view.snapshot.spent)}")
    if status.reason:
        print_line(f"  reason: {status.reason}")
    if status.note:
        print_line(f"  note: {status.note}")
