"""`massgen-mcp watch ID`: what happens in a run until it has ended or needs an answer. On a terminal it is the live
view of `massgen`, also of a run that another process executes; elsewhere text or JSON lines.
"""

import argparse
import os
import signal
from contextlib import aclosing

import anyio

from massgen_mcp.cli.asking import person_at_terminal
from massgen_mcp.cli.exits import EXIT_OK, exit_of_run
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.runs.service import RunService
from massgen_mcp.views.log_text import log_line


async def run(options: argparse.Namespace) -> int:
    code = EXIT_OK
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_leave_in_order)
        code = await _watch(options)
        tasks.cancel_scope.cancel()
    return code


async def _leave_in_order() -> None:
    """SIGTERM leaves as Ctrl-C does, with the terminal as it was."""
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            signal.raise_signal(signal.SIGINT)


async def _watch(options: argparse.Namespace) -> int:
    with run_service() as service:
        run_id = await service.find(options.run_id)
        if options.plain or (not options.json and person_at_terminal(os.environ)):
            from massgen_mcp.cli.massgen_mcp.watching import watch_as_person  # with a terminal library

            return await watch_as_person(service, run_id, plain=options.plain)
        return await _lines(service, run_id, as_json=options.json)


async def _lines(service: RunService, run_id: str, *, as_json: bool) -> int:
    code = EXIT_OK
    async with aclosing(service.follow(run_id, text=as_json)) as news:
        async for view, records in news:
            code = exit_of_run(view)
            for record in records:
                line = record.model_dump_json() if as_json else log_line(record, debug=False)
                if line is not None and not print_line(line):
                    return code  # nobody reads any more
    return code
