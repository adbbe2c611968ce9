"""`massgen-mcp result ID`: the answer first, then who won and why."""

import argparse

from massgen_mcp.cli.exits import exit_of_run
from massgen_mcp.cli.massgen_mcp.verbs.common import print_json
from massgen_mcp.cli.output import print_line, print_text
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.server import results
from massgen_mcp.server.results import Result


async def run(options: argparse.Namespace) -> int:
    what = "agent" if options.agent and options.view is None else options.view or "summary"
    with run_service() as service:
        view = await service.look(await service.find(options.run_id))
        found = results.whole_result(view, what, options.agent)
        if options.json:
            print_json(found)
        else:
            _say(found)
    return exit_of_run(view)


def _say(found: Result) -> None:
    if found.answer:
        print_text(found.answer)
        print_line()
    outcome = f", {found.outcome}" if found.outcome else ""
    print_line(f"{found.run_id}: {found.status}{outcome}, {found.seconds or 0:.1f} s")
    if found.reason:
        print_line(f"  reason: {found.reason}")
    if found.note:
        print_line(f"  note: {found.note}")
    if found.winner:
        print_line(f"  winner: {found.winner}; votes: {found.vote_counts}")
    for line in found.files.lines() if found.files else ():
        print_line(f"  {line}")
    for vote in found.votes or ():
        print_line(f"  {vote.voter} for {vote.voted_for} ({vote.label}): {vote.reason}")
    for fallen in found.degraded or ():
        print_line(f"  {fallen.agent} was dropped ({fallen.reason}): {fallen.message}")
        if fallen.unfinished:
            print_line(f"    unfinished: {fallen.unfinished}; see --view diff --agent {fallen.agent}")
    for name, path in (found.paths or {}).items():
        print_line(f"  {name}: {path}")
