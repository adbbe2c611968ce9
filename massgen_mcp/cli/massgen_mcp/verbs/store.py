"""`massgen-mcp store upgrade`: the tables of a store of several machines, made or brought to this version."""

import argparse
import os

import anyio.to_thread

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.output import print_line
from massgen_mcp.home import find_home
from massgen_mcp.runs.store.opening import open_cluster


async def run(options: argparse.Namespace) -> int:
    del options
    taken = await anyio.to_thread.run_sync(open_cluster(find_home(os.environ), os.environ).upgrade)
    print_line(f"upgraded: {len(taken)} steps" if taken else "up to date")
    return EXIT_OK
