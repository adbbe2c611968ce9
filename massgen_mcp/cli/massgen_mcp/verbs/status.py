"""`massgen-mcp runs`: the runs of this user, newest first. `massgen-mcp status ID`: what one is doing now, and
`massgen-mcp wait ID`: the same when it has ended or needs an answer. The exit code of `wait` says which.
"""

import argparse
import math
import time

from massgen_mcp.cli.exits import EXIT_OK, exit_of_run
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server import results
from massgen_mcp.views.firmness import shortly
from massgen_mcp.views.plain_text import preview
from massgen_mcp.views.spent import spent_text


async def run(options: argparse.Namespace) -> int:
    with run_service() as service:
        return await (_list if options.verb == "runs" else _stand)(service, options)


async def _stand(service: RunService, options: argparse.Namespace) -> int:
    """How one run stands: now, or when it has ended."""
    run_id, waits = await service.find(options.run_id), options.verb == "wait"
    if waits:
        seconds = math.inf if options.timeout is None else options.timeout
        view = await service.wait(run_id, until="terminal", seconds=seconds, cursor=None)
    else:
        view = await service.look(run_id)
    if options.json:
        print_line(results.status(view).as_json())
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


async def _list(service: RunService, options: argparse.Namespace) -> int:
    views = await service.recent(
        state=options.state, session_id=options.session, since=options.since, limit=options.limit
    )
    if options.json:
        print_line(results.run_list(views, options.limit, None).as_json())
        return EXIT_OK
    if not views:
        print_line("no runs")
    now = time.time()
    for view in views:
        question = preview(view.row.question, 60)
        summary = view.row.summary or shortly(view.row.weak.split())
        mark = "weak: " if view.row.weak else ""
        decided = f"  ({mark}{preview(summary, 150)})" if summary and view.state == "completed" else ""
        waits = f"  (waits: {preview(view.held_back_by, 150)})" if view.held_back_by else decided
        waits = f"  ({preview(view.row.moved, 150)})" if view.row.moved else waits
        print_line(f"{view.row.run_id}  {view.state:<14}  {_age(now - view.row.created):>4} ago  {question}{waits}")
    return EXIT_OK


def _age(seconds: float) -> str:
    """A time span in at most four characters."""
    for limit, unit, name in ((60, 1, "s"), (3600, 60, "m"), (86_400, 3600, "h")):
        if seconds < limit:
            return f"{max(0, int(seconds)) // unit}{name}"
    return f"{int(seconds) // 86_400}d"
