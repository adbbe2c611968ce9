"""`massgen-mcp cancel ID`: stop a run and keep its best answer."""

import argparse

from massgen_mcp.cli.exits import EXIT_NOT_ENDED, EXIT_OK
from massgen_mcp.cli.massgen_mcp.verbs.common import print_controlled
from massgen_mcp.cli.run_service import run_service

SECONDS = 10.0
"""How long a run is given to stop before this command says that it has not."""


async def run(options: argparse.Namespace) -> int:
    with run_service() as service:
        run_id = await service.find(options.run_id, to_change=True)
        await service.control(run_id, "cancel")
        view = await service.wait(run_id, until="terminal", seconds=SECONDS, cursor=None)
        print_controlled(view, "cancel", as_json=options.json)
    return EXIT_OK if view.ended else EXIT_NOT_ENDED
