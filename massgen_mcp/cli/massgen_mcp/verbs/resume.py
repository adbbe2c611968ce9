"""`massgen-mcp resume ID`: continue an interrupted run, with the keys of this environment."""

import argparse

from massgen_mcp.cli.massgen_mcp.verbs.common import control


async def run(options: argparse.Namespace) -> int:
    return await control(options, "resume")
