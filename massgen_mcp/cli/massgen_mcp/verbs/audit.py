"""`massgen audit`: which of the people who share a server started, steered or applied what."""

import argparse
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial

import anyio.to_thread

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.named_runs import find_run_to_read
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.server.results.reply import as_json


async def run(options: argparse.Namespace) -> int:
    with run_service() as service:
        run_id = options.run and await find_run_to_read(service, options.run)
        log = service.access.engine.store.audit
        read = partial(log.list_entries, person=options.person, run_id=run_id, limit=options.limit)
        entries = await anyio.to_thread.run_sync(read)
    if options.json:
        print_line(as_json({"entries": [asdict(entry) for entry in entries]}))
        return EXIT_OK
    for entry in entries:
        at = datetime.fromtimestamp(entry.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
        print_line(f"{at}  {entry.person:<20}  {entry.action:<12}  {entry.run_id}")
    return EXIT_OK
