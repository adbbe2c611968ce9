"""`massgen runs`: the runs of this user, newest first; and how one stands, in a few lines."""

import argparse
from dataclasses import replace
from pathlib import Path

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.massgen.earlier_runs import show_sessions
from massgen_mcp.cli.output import print_either, print_line, print_lines
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.runs.engine import RunFilter
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server import results
from massgen_mcp.server.results.runs import RunLine
from massgen_mcp.views.plain_text import preview
from massgen_mcp.views.spent import spent_text


def say_status(view: RunView) -> None:
    """Print how a run stands, in a few lines for people."""
    if view.damage is not None and not view.directory.path.exists():
        print_line(f"{view.row.run_id}: {view.state}; {view.damage}")
        return
    status = results.status(view)
    how_far = "" if view.ended else f", {status.phase}, {view.snapshot.progress}%"
    print_line(f"{status.run_id}: {status.status}{how_far}, {status.elapsed_seconds} s")
    if status.summary:
        print_line(f"  {status.summary}")
    print_lines(f"  {agent}" for agent in status.agents)
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
    page = results.run_list(views, options.limit, None, digests=digests, unapplied=unapplied)
    others = " except in batches and evaluations; `massgen runs --kind all` lists them" * hides
    lines = [f"{run.run_id}  {run.status:<14}  {run.age:>6} ago  {_describe_question(run)}" for run in page.runs]
    print_either(lines or [f"no runs{others}"], page.as_json(), as_json=options.json)
    return EXIT_OK


def _describe_question(run: RunLine) -> str:
    """The question, then what holds the run up, or how it was decided."""
    decided = run.summary or run.weak
    if run.weak and decided:
        decided = f"weak: {decided}"
    notes = [preview(run.reason or decided or "", 150), "expired" * bool(run.expired)]
    beside = "; ".join(filter(None, notes))
    return f"{preview(run.question, 60)}  ({beside})" if beside else preview(run.question, 60)
