"""`massgen-mcp status ID`: what a run is doing now."""

import argparse

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.massgen_mcp.verbs.common import print_json
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server import results
from massgen_mcp.views.spent import spent_text


async def run(options: argparse.Namespace) -> int:
    with run_service() as service:
        view = await service.look(await service.find(options.run_id))
        if options.json:
            print_json(results.status(view))
        else:
            print_status(view)
    return EXIT_OK


def print_status(view: RunView) -> None:
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
