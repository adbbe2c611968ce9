"""`massgen-mcp worker`: executes runs of a store of several machines, until it is told to leave."""

import argparse
import logging
import os
import sys

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.home import find_home
from massgen_mcp.open_files import allow_open_files
from massgen_mcp.redaction import redacted_output
from massgen_mcp.runs.store.opening import open_cluster
from massgen_mcp.server.log import JsonLog


async def run(options: argparse.Namespace) -> int:
    """Raises `MassgenError` where it cannot begin."""
    engine = open_cluster(find_home(os.environ).ensure(), os.environ)
    from massgen_mcp.runs.host.worker import work  # needs procrastinate, of the same extra

    allow_open_files()
    with redacted_output(redactor_for(os.environ)):
        logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        if options.log_format == "json":
            logging.getLogger().handlers[0].setFormatter(JsonLog())
        await work(engine, os.environ, options.pools, options.concurrency)
    return EXIT_OK
