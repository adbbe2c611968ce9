"""`massgen-mcp answer ID TEXT`: what a run that waits for an answer is told."""

import argparse

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.massgen_mcp.verbs.common import print_controlled
from massgen_mcp.cli.run_manager import run_manager


async def run(options: argparse.Namespace) -> int:
    with run_manager() as manager:
        view = await manager.control(await manager.find(options.run_id), "answer", options.text)
        print_controlled(view, as_json=options.json)
    return EXIT_OK
