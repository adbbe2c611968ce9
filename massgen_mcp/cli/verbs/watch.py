"""`massgen-mcp watch ID`: everything that happens in a run, as lines of text or JSON. It may be left."""

import argparse
import math

from massgen_mcp.cli.exits import exit_of_state
from massgen_mcp.cli.saying import say
from massgen_mcp.cli.verbs.desk import run_manager
from massgen_mcp.events import LogRecord
from massgen_mcp.runs.journal import JournalReader
from massgen_mcp.views.log_text import log_line


async def run(options: argparse.Namespace) -> int:
    with run_manager() as manager:
        run_id = await manager.find(options.run_id)
        view = await manager.look(run_id)
        journal = JournalReader(view.directory.events)
        while True:
            ended = view.ended  # before reading: nothing is written after the end
            for record in journal.read():
                line = record.model_dump_json() if options.json else _line(record)
                if line is not None and not say(line):
                    return exit_of_state(view.state)  # nobody reads any more
            if ended:
                return exit_of_state(view.state)
            view = await manager.wait(run_id, until="change", seconds=math.inf, cursor=view.snapshot.seq)


def _line(record: LogRecord) -> str | None:
    line = log_line(record)
    return None if line is None or " | DEBUG | " in line else line
