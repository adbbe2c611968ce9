"""`massgen audit`: which of the people who share a server started, steered or applied what."""

import argparse
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial

import anyio.to_thread

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.named_runs import find_run_to_read
from massgen_mcp.cli.output import print_either
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.server.results.reply import as_json


async def run(options: argparse.Namespace) -> int:
    with run_service() as service:
        run_id = options.run and await find_run_to_read(service, options.run)
        log = service.access.engine.store.audit
        read = partial(log.list_entries, person=options.person, run_id=run_id, limit=options.limit)
        entries = await anyio.to_thread.run_sync(read)
    document = as_json({"entries": [asdict(entry) for entry in entries]})
    lines = [
        f"{datetime.fromtimestamp(one.at, UTC):%Y-%m-%d %H:%M:%S}  {one.person:<20}  {one.action:<12}  {one.run_id}"
        for one in entries
    ]
    print_either(lines, document, as_json=options.json)
    return EXIT_OK
