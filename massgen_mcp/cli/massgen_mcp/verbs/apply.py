"""`massgen-mcp apply ID`: what a run changed, in the person's own files, on a branch of theirs, or taken back."""

import argparse

from massgen_mcp.cli.exits import EXIT_FAILED, EXIT_OK
from massgen_mcp.cli.massgen_mcp.verbs.common import print_json
from massgen_mcp.cli.output import print_error, print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.server.results import Applied, Ways, applied

VERB = Ways(
    "Leave --dry-run out to do it.",
    "Merge by hand what `massgen-mcp result --view diff` shows, remove what is in the way, or name only other files "
    "with --paths.",
)
UNDO = Ways("Leave --dry-run out to do it.", "Remove what is in the way of these files, or take them back by hand.")


async def run(options: argparse.Namespace) -> int:
    with run_service() as service:
        run_id = await service.find(options.run_id, to_change=True)
        application = await service.apply(
            run_id,
            dry_run=options.dry_run,
            agent=options.agent,
            paths=options.paths,
            branch=options.branch,
            undo=options.undo,
        )
    outcome = applied(run_id, application, UNDO if options.undo else VERB, most_bytes=None)
    if options.json:
        print_json(outcome)
    else:
        _say(outcome)
    return EXIT_FAILED if outcome.status == "conflicts" else EXIT_OK


def _say(outcome: Applied) -> None:
    if outcome.note:
        print_error(outcome.note)
    for file in outcome.files:
        print_line(file.text())
    for conflict in outcome.conflicts or ():
        print_line(f"conflict: {conflict.text()}")
    for one in outcome.left_out or ():
        print_line(f"left out: {one.text()}")
    branch = f" on branch {outcome.branch}" if outcome.branch else ""
    print_line(f"{outcome.status}{branch}: {outcome.next_step}")
