"""Waiting inside a tool call: with progress for the client that wants it, so that it neither gives up nor wonders."""

import anyio
from mcp.server.mcpserver import Context

from massgen_mcp.runs.run_view import RunView
from massgen_mcp.runs.service import RunService, Until

PROGRESS_SECONDS = 5.0


async def wait_with_progress(
    context: Context, service: RunService, run_id: str, until: Until, seconds: float, cursor: int | None
) -> RunView:
    """Like `RunService.wait`; a client that asked for progress hears some at least every ten seconds. For another one
    nothing is done until there is news.
    """
    if "progress_token" not in (context.request_context.meta or {}):
        return await service.wait(run_id, until=until, seconds=seconds, cursor=cursor)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_report, context, service, run_id)
        await service.wait(run_id, until=until, seconds=seconds, cursor=cursor)
        tasks.cancel_scope.cancel()
    return await service.look(run_id)


async def _report(context: Context, service: RunService, run_id: str) -> None:
    """Progress must rise with every report, and a run's percentage may fall, so seconds are counted instead."""
    began = anyio.current_time()
    while True:
        await anyio.sleep(PROGRESS_SECONDS)
        view = await service.look(run_id)
        run = view.snapshot
        message = f"{view.state}, {run.phase}: {len(run.answers)} answers, {len(run.votes)} votes"
        await context.report_progress(round(anyio.current_time() - began, 1), None, message)
