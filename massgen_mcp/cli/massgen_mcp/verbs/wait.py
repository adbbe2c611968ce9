"""`massgen-mcp wait ID`: until the run has ended or needs an answer. Its exit code says which."""

import argparse
import math

from massgen_mcp.cli.exits import exit_of_run
from massgen_mcp.cli.massgen_mcp.verbs.common import print_json
from massgen_mcp.cli.massgen_mcp.verbs.status import print_status
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.server import results


async def run(options: argparse.Namespace) -> int:
    seconds = math.inf if options.timeout is None else options.timeout
    with run_service() as service:
        run_id = await service.find(options.run_id)
        view = await service.wait(run_id, until="terminal", seconds=seconds, cursor=None)
        if options.json:
            print_json(results.status(view))
        else:
            print_status(view)
    return exit_of_run(view)
