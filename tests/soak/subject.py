"""What a fault is put into: start a run under a key and see it to its end, then leave. Prints the id it was told.

`python -m tests.soak.subject CONFIG KEY`, in the home of its environment. A refusal ends it with exit code 3.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

import anyio

from massgen_mcp.config.loader import load_config
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import find_home
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import local_engine
from tests.run_requests import asked

QUESTION = "What is six times seven?"
PATIENCE = 6


async def main(config: str, key: str) -> int:
    service = RunService(local_engine(find_home(os.environ)), os.environ)
    try:
        view, _ = await service.start(
            await service.prepare(
                asked(QUESTION, load_config(Path(config), environ={}), environ=os.environ, source=config, key=key)
            )
        )
        _say(1, view.row.run_id)
        with anyio.move_on_after(PATIENCE):
            await service.watcher.wait(view.row.run_id, until="terminal", seconds=PATIENCE, cursor=None)
    except MassgenError as refused:
        _say(2, f"ERROR {refused.code}: {refused}")
        return 3
    finally:
        service.close()
    return 0


def _say(descriptor: int, text: str) -> None:
    """What is said may be hit by a fault, too; that proves nothing."""
    with suppress(OSError):
        os.write(descriptor, f"{text}\n".encode())


if __name__ == "__main__":
    sys.exit(anyio.run(main, sys.argv[1], sys.argv[2]))
