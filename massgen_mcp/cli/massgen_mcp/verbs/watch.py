"""`massgen-mcp watch ID`: what happens in a run until it has ended or needs an answer, as text or JSON lines."""

import argparse
from contextlib import aclosing

from massgen_mcp.cli.exits import EXIT_OK, exit_of_run
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.views.log_text import log_line


async def run(options: argparse.Namespace) -> int:
    code = EXIT_OK
    with run_service() as service:
        async with aclosing(service.follow(await service.find(options.run_id), text=options.json)) as news:
            async for view, records in news:
                code = exit_of_run(view)
                for record in records:
                    line = record.model_dump_json() if options.json else log_line(record, debug=False)
                    if line is not None and not print_line(line):
                        return code  # nobody reads any more
    return code
