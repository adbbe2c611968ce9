"""`massgen export ID` and `massgen import FILE`: a run goes from one store to another."""

import argparse
import signal
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import FrameType

import anyio.to_thread

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.massgen_mcp.verbs.controls import accept_demands, is_trusted
from massgen_mcp.cli.named_runs import find_run_to_change
from massgen_mcp.cli.output import print_error, print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.request.output_file import OutputFile
from massgen_mcp.runs.moving import ImportRequest, MovedIn, MovedOut, move_in, move_out
from massgen_mcp.server.results.reply import as_json as format_json
from massgen_mcp.threads import run_in_stoppable_thread


async def export_run(options: argparse.Namespace) -> int:
    with run_service() as service:
        run_id = await find_run_to_change(service, options, "export")
        target = OutputFile((options.to or Path(f"{run_id}.tar.gz")).absolute(), "--output")
        target.check()
        signal.signal(signal.SIGTERM, _interrupt)
        access = service.access
        moved = await run_in_stoppable_thread(partial(move_out, access.engine, access.get_watch, run_id, target.path))
    return _say(moved, f"{'moved' if moved.moved else 'copied'} to {moved.file}", as_json=options.json)


async def import_run(options: argparse.Namespace) -> int:
    with run_service() as service:
        accepts = partial(is_trusted, options.trust)
        request = ImportRequest(options.file.absolute(), accepts, options.owner, options.back, options.yes)
        moved = await anyio.to_thread.run_sync(move_in, service.access, request)
        if moved.asks_for and not options.json and (accepted := await accept_demands(service, moved.run_id, None)):
            await service.resume(moved.run_id, accepted)
            moved = replace(moved, asks_for=())
    return _say(moved, f"{'here already' if moved.known else 'imported'}, {moved.state}", as_json=options.json)


def _say(moved: MovedOut | MovedIn, done: str, *, as_json: bool) -> int:
    if as_json:
        told = asdict(moved)
        print_line(format_json({name: value for name, value in told.items() if name != "asks_for" or value}))
        return EXIT_OK
    print_line(f"{moved.run_id}: {done}")
    for note in moved.notes:
        print_error(note)
    if isinstance(moved, MovedIn) and moved.asks_for:
        lines = ["The run is waiting for your consent to the permissions marked `!`:", *moved.asks_for]
        print_error("\n".join([*lines, f"To continue the run: massgen resume {moved.run_id} --trust"]))
    return EXIT_OK


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """End the export as Ctrl-C does, so that the run goes on here."""
    signal.raise_signal(signal.SIGINT)
