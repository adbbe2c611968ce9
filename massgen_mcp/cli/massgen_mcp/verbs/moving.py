"""`massgen-mcp export ID` and `massgen-mcp import FILE`: a run goes from one store to another."""

import argparse
from dataclasses import asdict
from pathlib import Path

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.output import print_error, print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.request.output_file import OutputFile
from massgen_mcp.server.results.reply import as_json


async def run(options: argparse.Namespace) -> int:
    with run_service() as service:
        if options.verb == "export":
            run_id = await service.find(options.run_id, to_change=True)
            target = OutputFile((options.to or Path(f"{run_id}.tar.gz")).absolute(), "--to")
            target.check()
            moved = await service.move_out(run_id, target.path)
            done = f"{'moved' if moved.moved else 'copied'} to {moved.file}"
        else:
            moved = await service.move_in(options.file.absolute(), options.owner, back=options.back)
            done = f"{'here already' if moved.known else 'imported'}, {moved.state}"
    if options.json:
        print_line(as_json(asdict(moved)))
    else:
        print_line(f"{moved.run_id}: {done}")
        for note in moved.notes:
            print_error(note)
    return EXIT_OK
