"""`massgen-mcp raise-budget ID USD`: a new budget for a run, also for one that waits for it."""

import argparse

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.massgen_mcp.verbs.common import print_controlled
from massgen_mcp.cli.run_service import run_service


async def run(options: argparse.Namespace) -> int:
    with run_service() as service:
        view = await service.control(await service.find(options.run_id), "raise_budget", value=options.usd)
        print_controlled(view, as_json=options.json)
    return EXIT_OK
