"""`massgen-mcp raise-budget ID USD`: a new budget for a run, also for one that waits for it."""

import argparse

from massgen_mcp.cli.massgen_mcp.verbs.common import control


async def run(options: argparse.Namespace) -> int:
    return await control(options, "raise_budget", value=options.usd)
