"""`massgen apply ID`: what a run changed, in the person's own files, on branches of theirs, or taken back."""

import argparse
from collections.abc import Iterator

from massgen_mcp.cli.exits import EXIT_FAILED, EXIT_OK
from massgen_mcp.cli.named_runs import find_run_to_change
from massgen_mcp.cli.output import print_error, print_line, print_lines
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.patches.applying import ApplyRequest
from massgen_mcp.server.results import Applied, Ways, applied
from massgen_mcp.server.results.reply import as_json

VERB = Ways(
    "To apply the changes, repeat the command without --dry-run.",
    "Merge the diff from `massgen result --view diff` by hand, remove the files in the way, or use --paths to "
    "apply only other files.",
)
UNDO = Ways(
    "To undo the changes, repeat the command without --dry-run.",
    "Remove the files in the way, or restore the listed files by hand.",
)


async def run(options: argparse.Namespace) -> int:
    with run_service() as service:
        run_id = await find_run_to_change(service, options, "undo" if options.undo else "apply")

        async def done(agent: str | None, branch: str | None, *, dry_run: bool) -> Applied:
            request = ApplyRequest(dry_run, agent, options.paths, branch, options.undo, options.directory)
            application = await service.applier.apply(run_id, request)
            return applied(run_id, application, UNDO if options.undo else VERB, most_bytes=None)

        wanted: list[tuple[str | None, str | None]] = [(options.agent, options.branch)]
        if options.all:
            wanted = [*_attempts((await service.watcher.get_run(run_id)).snapshot, options.branch)] or wanted
            for agent, branch in wanted:
                await done(agent, branch, dry_run=True)  # a name that cannot be taken is refused before any is
        outcomes = [await done(agent, branch, dry_run=options.dry_run) for agent, branch in wanted]
    if options.json and options.all:
        print_line(as_json([outcome.structured() for outcome in outcomes]))
    elif options.json:
        print_line(outcomes[0].as_json())
    else:
        for outcome in outcomes:
            _say(outcome)
    return EXIT_FAILED if any(outcome.status == "conflicts" for outcome in outcomes) else EXIT_OK


def _attempts(run: RunState, prefix: str) -> Iterator[tuple[str | None, str]]:
    """Every agent that has changed files, and its branch. None stands for the winner, whose final files count."""
    for one in run.agents.values():
        agent = None if one.info.id == run.author else one.info.id
        made = run.best_changes if agent is None else one.latest_changes
        if made is not None and made.count:
            yield agent, f"{prefix}/{one.info.id}"


def _say(outcome: Applied) -> None:
    if outcome.note:
        print_error(outcome.note)
    print_lines(file.text() for file in outcome.files)
    print_lines(f"conflict: {conflict.text()}" for conflict in outcome.conflicts or ())
    print_lines(f"left out: {one.text()}" for one in outcome.left_out or ())
    branch = f" on branch {outcome.branch}" if outcome.branch else ""
    print_line(f"{outcome.status}{branch}: {outcome.next_step}")
