"""`massgen-mcp runs`: the runs of this user, newest first."""

import argparse
import time

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.massgen_mcp.verbs.common import print_json
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.server.results import run_list
from massgen_mcp.views.firmness import shortly
from massgen_mcp.views.plain_text import preview


async def run(options: argparse.Namespace) -> int:
    with run_service() as service:
        views = await service.recent(
            state=options.state, session_id=options.session, since=options.since, limit=options.limit
        )
        if options.json:
            print_json(run_list(views, options.limit, None))
            return EXIT_OK
        if not views:
            print_line("no runs")
        now = time.time()
        for view in views:
            question = preview(view.row.question, 60)
            weak = f"  (weak: {shortly(view.row.weak.split())})" if view.row.weak and view.state == "completed" else ""
            waits = f"  (waits: {preview(view.held_back_by, 150)})" if view.held_back_by else weak
            print_line(f"{view.row.run_id}  {view.state:<14}  {_age(now - view.row.created):>4} ago  {question}{waits}")
    return EXIT_OK


def _age(seconds: float) -> str:
    """A time span in at most four characters."""
    for limit, unit, name in ((60, 1, "s"), (3600, 60, "m"), (86_400, 3600, "h")):
        if seconds < limit:
            return f"{max(0, int(seconds)) // unit}{name}"
    return f"{int(seconds) // 86_400}d"
