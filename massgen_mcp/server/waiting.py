"""Waiting inside a tool call: with progress for the client, so that it neither gives up nor wonders, with the run's log
where the client wants it, and with the run's questions for the person there.

A client of a handshake revision is sent a question during the call, and asks for the log with `logging/setLevel`. One
of 2026-07-28 gets the question as the result of the call, and calls again with the answer, of which nothing is kept
here, so any server process can take that; it asks for the log with every request.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import (
    LOG_LEVEL_META_KEY,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmptyResult,
    InputRequiredResult,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    SetLevelRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.checks import checked_raise
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.runs.watcher import Until
from massgen_mcp.server.connection import state_of
from massgen_mcp.server.decisions import build_raise_form, can_be_asked, decision_in, form_of, question_key
from massgen_mcp.views.event_lines import log_line
from massgen_mcp.views.plain_text import counted
from massgen_mcp.views.sentences import LogLevel, sentence_of
from massgen_mcp.views.spent import spent_figures

PROGRESS_SECONDS = 5.0
LOG_SECONDS = 2.0
"""The rest of the log of a run that has come to a stop may take so long."""
_LEVELS: tuple[LoggingLevel, ...] = get_args(LoggingLevel)
_AS_SENT: dict[LogLevel, LoggingLevel] = {"DEBUG": "debug", "INFO": "info", "WARNING": "warning", "ERROR": "error"}
_KEPT = "log_level"


class ClientAsked(Exception):
    """Ends a tool call: its result is a question to the client."""

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__("the client has been asked")
        self.result = result


async def heed_answers(context: Context[Any, Any], service: RunService, run_id: str) -> set[str]:
    """Carry out what the person decided, if the client calls again with it. An answer to a question that is not open
    any more changes nothing. Returns the keys of the questions on which the person decided nothing. Raises as
    `RunService.control`.
    """
    answers = {key: one for key, one in (context.input_responses or {}).items() if isinstance(one, ElicitResult)}
    if not answers:
        return set()
    view = await service.watcher.get_run(run_id)
    if answer := answers.get(question_key(view) or ""):
        await _carry_out(service, view, answer)
    return {key for key, answer in answers.items() if answer.action != "accept"}


async def ask(
    context: Context[Any, Any], service: RunService, view: RunView, declined: set[str], *, repeatable: bool
) -> bool:
    """Ask what the run needs to know and carry out what is decided. False if the client cannot be asked, or the person
    decided nothing, now or as `declined` says. Raises `ClientAsked` where the question has to be the result of the
    call, which must be `repeatable` then.
    """
    key = question_key(view)
    if key is None or key in declined:
        return False
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS and not repeatable:
        return False
    answer = await _elicit(context, key, form_of(view))
    if answer is None:
        return False
    view = await service.watcher.get_run(view.row.run_id)
    return question_key(view) != key or await _carry_out(service, view, answer)


async def is_raise_agreed(context: Context[Any, Any], service: RunService, run_id: str, value: float | None) -> bool:
    """Ask the person at the client whether the run may spend more. False where they decline, or the client cannot ask.

    Raises `MassgenError` where the budget cannot be raised to `value`, and `ClientAsked` where the question has to be
    the result of the call.
    """
    view = await service.watcher.get_run(run_id)
    checked_raise(view, value)
    key = f"raise_budget-{run_id}-{value!r}"
    answer = (context.input_responses or {}).get(key)
    if not isinstance(answer, ElicitResult):
        answer = await _elicit(context, key, build_raise_form(view, value or 0.0))
    return answer is not None and answer.action == "accept"


async def _elicit(context: Context[Any, Any], key: str, request: ElicitRequest) -> ElicitResult | None:
    """Show a form to the person at the client. None where the client can't. Raises `ClientAsked` where the question
    has to be the result of the call.
    """
    if not can_be_asked(context.client_capabilities):
        return None
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        raise ClientAsked(InputRequiredResult(input_requests={key: request}))
    params = request.params
    if not context.session.can_send_request or not isinstance(params, ElicitRequestFormParams):
        return None
    try:
        return await context.session.elicit_form(params.message, params.requested_schema, context.request_id)
    except MCPError:  # it cannot after all: the model is told instead
        return None


async def _carry_out(service: RunService, view: RunView, answer: ElicitResult) -> bool:
    decision = decision_in(view, answer)
    if decision is not None:
        await service.control(view.row.run_id, decision.action, decision.message, decision.value)
    return decision is not None


async def set_level(ctx: ServerRequestContext[Any, Any], params: SetLevelRequestParams) -> EmptyResult:
    """`logging/setLevel`, for this connection."""
    state_of(ctx)[_KEPT] = params.level
    return EmptyResult()


async def follow_log(ctx: ServerRequestContext[Any, Any], service: RunService, run_id: str, after: int | None) -> None:
    """Send what happens in the run after event number `after`, or else from now on, in the client's level, until the
    run has ended or needs its caller.
    """
    lowest = _wanted(ctx)
    if lowest is None:
        return
    seen = (await service.watcher.get_run(run_id)).snapshot.seq if after is None else after
    async for view, records in service.watcher.follow(run_id):
        for record in records:
            level = _AS_SENT.get(sentence_of(record.event).level or "DEBUG", "debug")
            if record.seq > seen and _LEVELS.index(level) >= lowest and (line := log_line(record, view.snapshot)):
                params = LoggingMessageNotificationParams(level=level, logger=run_id, data=line)
                await ctx.session.send_notification(LoggingMessageNotification(params=params), ctx.request_id)


def _wanted(ctx: ServerRequestContext[Any, Any]) -> int | None:
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        level = dict(ctx.meta or {}).get(LOG_LEVEL_META_KEY)
    else:
        level = state_of(ctx).get(_KEPT)
    return _LEVELS.index(level) if level in _LEVELS else None


@dataclass(frozen=True, slots=True)
class WaitRequest:
    """A run and the change in it to wait for, as `RunWatcher.wait` has them."""

    run_id: str
    seconds: float
    until: Until = "terminal"
    cursor: int | None = None


async def wait_with_progress(
    context: Context[Any, Any], service: RunService, wait: WaitRequest, *, repeatable: bool = False
) -> RunView:
    """Like `RunWatcher.wait`, reporting progress at least every ten seconds to a client that wants it; for another one
    nothing is done until there is news. What the run needs to know is asked on the way; waiting goes on with the answer
    for what is left of the seconds.

    `repeatable`: the call does no harm when it is made again, so its result may be a question: raises `ClientAsked`.
    """
    run_id = wait.run_id
    declined = await heed_answers(context, service, run_id) if repeatable else set[str]()
    until_then = anyio.current_time() + wait.seconds
    question: ClientAsked | None = None
    ended: RunView | None = None
    async with anyio.create_task_group() as tasks:
        if "progress_token" in (context.request_context.meta or {}):
            tasks.start_soon(_report, context, service, run_id)
        logged = anyio.Event()
        tasks.start_soon(_log, context, service, run_id, wait.cursor, logged)
        view = await service.watcher.wait(run_id, until=wait.until, seconds=wait.seconds, cursor=wait.cursor)
        try:
            while view.state == "input_required" and await ask(context, service, view, declined, repeatable=repeatable):
                left = max(0.0, until_then - anyio.current_time())
                view = await service.watcher.wait(run_id, until=wait.until, seconds=left, cursor=wait.cursor)
        except ClientAsked as asked:
            question = asked
        ended = view if view.ended else None
        if view.stands_still:
            with anyio.move_on_after(LOG_SECONDS):
                await logged.wait()
        tasks.cancel_scope.cancel()
    if question is not None:
        raise question
    return ended or await service.watcher.get_run(run_id)


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
        message = standing(await service.watcher.get_run(run_id))
        await context.report_progress(round(anyio.current_time() - began, 1), None, message)


def standing(view: RunView) -> str:
    """How far the run is, and what it has spent, in one short line."""
    run = view.snapshot
    votes = f"{len(run.votes)} of {len(run.agents)} votes"
    answers = counted(len(run.answers), "answer")
    return ", ".join([f"{view.state}, {run.phase}: {answers}", votes, *spent_figures(run.spent)])
