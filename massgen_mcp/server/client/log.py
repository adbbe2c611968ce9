"""The log of a run for a client that asked for one, while a call waits for the run: `notifications/message`.

A client of a handshake revision asks with `logging/setLevel`, one of 2026-07-28 with every request. Nobody else is sent
anything.
"""

from typing import Any, get_args

from mcp.server.context import ServerRequestContext
from mcp.types import (
    LOG_LEVEL_META_KEY,
    EmptyResult,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    SetLevelRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from massgen_mcp.runs.service import RunService
from massgen_mcp.server.client.connection import state_of
from massgen_mcp.views.event_lines import log_line
from massgen_mcp.views.sentences import Level, sentence_of

_LEVELS: tuple[LoggingLevel, ...] = get_args(LoggingLevel)
_AS_SENT: dict[Level, LoggingLevel] = {"DEBUG": "debug", "INFO": "info", "WARNING": "warning", "ERROR": "error"}
_KEPT = "log_level"


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
    seen = (await service.look(run_id)).snapshot.seq if after is None else after
    async for _, records in service.follow(run_id):
        for record in records:
            level = _AS_SENT.get(sentence_of(record.event).level or "DEBUG", "debug")
            if record.seq > seen and _LEVELS.index(level) >= lowest and (line := log_line(record)):
                params = LoggingMessageNotificationParams(level=level, logger=run_id, data=line)
                await ctx.session.send_notification(LoggingMessageNotification(params=params), ctx.request_id)


def _wanted(ctx: ServerRequestContext[Any, Any]) -> int | None:
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        level = dict(ctx.meta or {}).get(LOG_LEVEL_META_KEY)
    else:
        level = state_of(ctx).get(_KEPT)
    return _LEVELS.index(level) if level in _LEVELS else None
