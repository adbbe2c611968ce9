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
        run_id = await service.find(options.run_id)
        application = await service.apply(
            run_id, dry_run=options.dry_run, paths=options.paths, branch=options.branch, undo=options.undo
        )
    told = applied(run_id, application, UNDO if options.undo else VERB, most_bytes=None)
    if options.json:
        print_json(told)
    else:
        _say(told)
    return EXIT_FAILED if told.status == "conflicts" else EXIT_OK


def _say(told: Applied) -> None:
    if told.note:
        print_error(told.note)
    for file in told.files:
        print_line(file.text())
    for conflict in told.conflicts or ():
        print_line(f"conflict: {conflict.text()}")
    for path in told.left_out or ():
        print_line(f"left out, given to read only: {path}")
    branch = f" on branch {told.branch}" if told.branch else ""
    print_line(f"{told.status}{branch}: {told.next_step}")
