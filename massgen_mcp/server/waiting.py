"""Waiting inside a tool call: with progress for the client, so that it neither gives up nor wonders, with the run's log
where the client wants it, and with the run's questions for the person there.
"""

from contextlib import suppress
from typing import Any

import anyio
from mcp.server.mcpserver import Context

from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.service import RunService, Until
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.client.asking import ClientAsked, ask, heed_answers
from massgen_mcp.server.client.log import follow_log
from massgen_mcp.views.spent import spent_figures

PROGRESS_SECONDS = 5.0
LOG_SECONDS = 2.0
"""The rest of the log of a run that has come to a stop may take so long."""


async def wait_with_progress(
    context: Context[Any, Any],
    service: RunService,
    run_id: str,
    until: Until,
    seconds: float,
    cursor: int | None,
    *,
    repeatable: bool = False,
) -> RunView:
    """Like `RunService.wait`, reporting progress at least every ten seconds to a client that wants it; for another one
    nothing is done until there is news. What the run needs to know is asked on the way; waiting goes on with the answer
    for what is left of `seconds`.

    `repeatable`: the call does no harm when it is made again, so its result may be a question: raises `ClientAsked`.
    """
    declined = await heed_answers(context, service, run_id) if repeatable else set[str]()
    until_then = anyio.current_time() + seconds
    question: ClientAsked | None = None
    async with anyio.create_task_group() as tasks:
        if "progress_token" in (context.request_context.meta or {}):
            tasks.start_soon(_report, context, service, run_id)
        logged = anyio.Event()
        tasks.start_soon(_log, context, service, run_id, cursor, logged)
        view = await service.wait(run_id, until=until, seconds=seconds, cursor=cursor)
        try:
            while view.state == "input_required" and await ask(context, service, view, declined, repeatable=repeatable):
                left = max(0.0, until_then - anyio.current_time())
                view = await service.wait(run_id, until=until, seconds=left, cursor=cursor)
        except ClientAsked as asked:
            question = asked
        if view.stands_still:
            with anyio.move_on_after(LOG_SECONDS):
                await logged.wait()
        tasks.cancel_scope.cancel()
    if question is not None:
        raise question
    return await service.look(run_id)


async def _log(
    context: Context[Any, Any], service: RunService, run_id: str, after: int | None, done: anyio.Event
) -> None:
    with suppress(MassgenError):  # the call itself tells what is wrong with the run
        await follow_log(context.request_context, service, run_id, after)
    done.set()


async def _report(context: Context[Any, Any], service: RunService, run_id: str) -> None:
    """Progress must rise with every report, and a run's percentage may fall, so seconds are counted instead."""
    began = anyio.current_time()
    while True:
        await anyio.sleep(PROGRESS_SECONDS)
        message = standing(await service.look(run_id))
        await context.report_progress(round(anyio.current_time() - began, 1), None, message)


def standing(view: RunView) -> str:
    """How far the run is, and what it has spent, in one short line."""
    run = view.snapshot
    votes = f"{len(run.votes)} of {len(run.agents)} votes"
    return ", ".join([f"{view.state}, {run.phase}: {len(run.answers)} answers", votes, *spent_figures(run.spent)])
