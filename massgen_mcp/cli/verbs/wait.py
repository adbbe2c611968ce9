"""`massgen-mcp wait ID`: until the run has ended or needs an answer. Its exit code says which."""

import argparse
import math

import anyio

from massgen_mcp.cli.exits import exit_of_state
from massgen_mcp.cli.verbs.desk import run_manager, say_json
from massgen_mcp.cli.verbs.status import say_status
from massgen_mcp.runs.manager import RunManager, RunView
from massgen_mcp.server import results


async def run(options: argparse.Namespace) -> int:
    seconds = math.inf if options.timeout is None else options.timeout
    with run_manager() as manager:
        view = await wait_for_end(manager, await manager.find(options.run_id), seconds)
        if options.json:
            say_json(results.status(view))
        else:
            say_status(view)
    return exit_of_state(view.state)


async def wait_for_end(manager: RunManager, run_id: str, seconds: float) -> RunView:
    """The run when it has ended or needs an answer, or after `seconds`."""
    deadline = anyio.current_time() + seconds
    view = await manager.look(run_id)
    while not view.ended and view.state != "input_required" and (left := deadline - anyio.current_time()) > 0:
        view = await manager.wait(run_id, until="change", seconds=left, cursor=view.snapshot.seq)
    return view
