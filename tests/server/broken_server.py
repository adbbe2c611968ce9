"""A server in which one part is broken: looking at a run fails in a way that nobody foresaw, inside a task group."""

from typing import NoReturn

import anyio

from massgen_mcp.cli.massgen_mcp.main import main
from massgen_mcp.runs.watcher import RunWatcher

PLANTED = "planted-value-of-a-fault"


async def look(self: RunWatcher, run_id: str) -> NoReturn:
    del self

    async def fail() -> None:
        raise KeyError(f"{PLANTED} {run_id}")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fail)
    raise AssertionError


if __name__ == "__main__":
    RunWatcher.get_run = look
    main()
