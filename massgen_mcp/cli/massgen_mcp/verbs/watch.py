"""`massgen-mcp watch ID`: what happens in a run until it has ended or needs an answer, as text or JSON lines."""

import argparse
import math

from massgen_mcp.cli.exits import exit_of_run
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.run_manager import run_manager
from massgen_mcp.events import LogRecord
from massgen_mcp.views.log_text import log_line


async def run(options: argparse.Namespace) -> int:
    with run_manager() as manager:
        run_id = await manager.find(options.run_id)
        view = await manager.look(run_id)
        journal = view.directory.event_log.follow()
        while True:
            ended = view.stands_still  # before reading: nothing more is written for now
            for record in journal.read():
                line = record.model_dump_json() if options.json else _line(record)
                if line is not None and not print_line(line):
                    return exit_of_run(view)  # nobody reads any more
            if ended:
                return exit_of_run(view)
            view = await manager.wait(run_id, until="change", seconds=math.inf, cursor=view.snapshot.seq)


def _line(record: LogRecord) -> str | None:
    line = log_line(record)
    return None if line is None or " | DEBUG | " in line else line
