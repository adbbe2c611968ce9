"""`massgen-mcp answer ID TEXT`: what a run that waits for an answer is told."""

import argparse

from massgen_mcp.cli.massgen_mcp.verbs.common import control


async def run(options: argparse.Namespace) -> int:
    return await control(options, "answer", options.text)
