"""A store of several machines: `massgen store upgrade` makes its tables or brings them to this version, and
`massgen worker` executes its runs until it is told to leave.
"""

import argparse
import logging
import os
import sys

import anyio.to_thread

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.output import print_line
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.home import find_home
from massgen_mcp.open_files import allow_open_files
from massgen_mcp.redaction import redacted_output
from massgen_mcp.runs.store.opening import open_cluster
from massgen_mcp.server.log import JsonLog


async def upgrade_store(options: argparse.Namespace) -> int:  # noqa: ARG001 - every verb takes its options
    taken = await anyio.to_thread.run_sync(open_cluster(find_home(os.environ), os.environ).upgrade)
    print_line(f"upgraded: {len(taken)} steps" if taken else "up to date")
    return EXIT_OK


async def work_on_runs(options: argparse.Namespace) -> int:
    engine = open_cluster(find_home(os.environ).ensure(), os.environ)
    from massgen_mcp.runs.host.worker import work  # needs procrastinate, of the same extra

    allow_open_files()
    with redacted_output(redactor_for(os.environ)):
        logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        if options.log_format == "json":
            logging.getLogger().handlers[0].setFormatter(JsonLog())
        await work(engine, os.environ, options.pools, options.concurrency)
    return EXIT_OK
