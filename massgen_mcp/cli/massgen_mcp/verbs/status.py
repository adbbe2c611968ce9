"""`massgen runs`: the runs of this user, newest first; and how one stands, in a few lines."""

import argparse
import time
from dataclasses import replace
from pathlib import Path

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.massgen.earlier_runs import show_sessions
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.runs.engine import RunFilter
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server import results
from massgen_mcp.views.firmness import shortly
from massgen_mcp.views.plain_text import preview
from massgen_mcp.views.spent import spent_text


def say_status(view: RunView) -> None:
    """Print how a run stands, in a few lines for people."""
    status = results.status(view)
    how_far = "" if view.ended else f", {status.phase}, {view.snapshot.progress} %"
    print_line(f"{status.run_id}: {status.status}{how_far}, {status.elapsed_seconds} s")
    if status.summary:
        print_line(f"  {status.summary}")
    for agent in status.agents:
        print_line(f"  {agent}")
    print_line(f"  {status.model_calls} model calls, {spent_text(view.snapshot.spent)}")
    if status.reason:
        print_line(f"  reason: {status.reason}")
    if status.note:
        print_line(f"  note: {status.note}")


async def list_runs(options: argparse.Namespace) -> int:
    if options.sessions:
        return show_sessions(Path.cwd(), as_json=options.json)
    with run_service() as service:
        wanted = RunFilter(options.state, options.session, options.since, options.kind)
        views = await service.watcher.list_runs(wanted, limit=options.limit)
        digests = await service.outcomes.read_digests(views)
        unapplied = await service.applier.find_unapplied(views)
        hides = not views and bool(await service.watcher.list_runs(replace(wanted, kind="all"), limit=1))
    if options.json:
        page = results.run_list(views, options.limit, None, digests=digests, unapplied=unapplied)
        print_line(page.as_json())
        return EXIT_OK
    if hides:
        print_line("there are only runs of batches and evaluations here; `massgen runs --kind all` lists them")
    elif not views:
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
