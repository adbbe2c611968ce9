"""`massgen result ID`: the answer first, then who won and why, in the words that `massgen` ends with."""

import argparse
import os
from pathlib import Path

from massgen_mcp.cli.asking import person_at_terminal
from massgen_mcp.cli.exits import exit_of_run
from massgen_mcp.cli.live.telling import Telling, open_terminal
from massgen_mcp.cli.named_runs import find_run_to_read
from massgen_mcp.cli.output import print_line, print_text
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server import results
from massgen_mcp.server.results import Result
from massgen_mcp.server.results.words import bringing_in, note_on
from massgen_mcp.views.ending import RemainingFiles


async def show_result(options: argparse.Namespace) -> int:
    what = "agent" if options.agent and options.view is None else options.view or "summary"
    with run_service() as service:
        view = await service.watcher.get_run(await find_run_to_read(service, options.run_id))
        if not view.ended and not view.row.moved and what not in ("agent", "votes") and options.agent is None:
            raise MassgenError("not_finished", _describe_progress(view))
        found = results.whole_result(view, what, options.agent)
        if options.json:
            print_line(results.render_result(view, found))
        else:
            _say(found, view, options)
    return exit_of_run(view)


def _describe_progress(view: RunView) -> str:
    """Say how a run goes on that has no result yet."""
    run_id = view.row.run_id
    match view.state:
        case "input_required":
            return (
                f"{run_id} needs your input: `massgen status {run_id}` shows what; reply with `massgen answer {run_id}`"
            )
        case "interrupted":
            return f"{run_id} was interrupted; `massgen resume {run_id}` continues it"
        case state:
            return f"{run_id} is {state}; `massgen watch {run_id}` follows it"


def _say(found: Result, view: RunView, options: argparse.Namespace) -> None:
    """Beside one agent's words or a difference only how the run ended."""
    if found.answer:
        print_text(found.answer)
        print_line()
    if not view.ended or view.damage is not None:
        follows = "" if view.ended else f"; `massgen watch {found.run_id}` follows it"
        print_line(f"{found.run_id}: {found.status}{follows}")
        return
    telling = Telling(open_terminal(wanted=person_at_terminal(os.environ)), print_line)
    telling.outcome(view.snapshot)
    if options.agent is not None or options.view == "diff":
        return
    if found.files is not None:
        apply = f"`massgen apply {found.run_id}`"
        for line in filter(None, [*found.files.lines(), bringing_in(view, view.snapshot.best_changes, None, apply)]):
            telling.aside(line)
    for fallen in found.degraded or ():
        if fallen.unfinished:
            telling.aside(f"{fallen.agent} left {fallen.unfinished}; see --view diff --agent {fallen.agent}")
    if note := note_on(view):
        telling.aside(note)
    answer, page = (
        Path(path) if (path := (found.paths or {}).get(name)) else None for name in ("final_answer", "report")
    )
    kept = RemainingFiles(view.directory.path, answer, None, page, listed=options.view is None)
    telling.rest(view.snapshot, kept)
