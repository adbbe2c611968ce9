"""A known-bad twin: a process that is told to leave takes its runs with it, in place of leaving them to the next."""

import os

import anyio

from massgen_mcp.runs.host.execute import abort_run
from massgen_mcp.runs.host.run_host import ExecutedRun, RunExecutor, RunHost

_execute = RunExecutor.execute


async def _end_with_process(self: RunExecutor, host: RunHost) -> None:
    try:
        await _execute(self, host)
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            ended = await abort_run(await host.open_files(), "runner_lost", "the process was told to leave", os.environ)
            await host.end(ExecutedRun(ended))
            await self.enter_end(host.run_id, ended)
        raise


RunExecutor.execute = _end_with_process
