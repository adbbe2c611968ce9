"""How clients are told of changes: `subscriptions/listen` of 2026-07-28, where the answer to one request is the stream,
and the notifications of a connection of the handshake revisions, with `resources/subscribe`.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver.server import require_client_extension
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY, ResourcesListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import event_to_notification
from mcp.types import (
    INVALID_PARAMS,
    EmptyResult,
    NotificationParams,
    ServerNotification,
    SubscribeRequestParams,
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.service import RunService
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.server.client.connection import at_end, state_of
from massgen_mcp.server.subscriptions import Change, Subscriber, TaskChanged
from massgen_mcp.server.tasks import TASKS, detailed

logger = logging.getLogger(__name__)

Context = ServerRequestContext[TaskGroup, Any]
SUBSCRIBER = "subscriber"
TASK_IDS = "taskIds"


class TaskNotification(BaseModel):
    method: str = "notifications/tasks"
    params: dict[str, Any]


class ChangeListeners:
    """The clients that are told of changes."""

    def __init__(self, server: MassgenServer, service: RunService, *, answered_early: bool) -> None:
        self._server, self._service = server, service
        self._list_is_old = answered_early
        self._streams: set[anyio.CancelScope] = set()
        server.serve_method("subscriptions/listen", SubscriptionsListenRequestParams, self._listen)
        server.serve_method("resources/subscribe", SubscribeRequestParams, self._subscribe)
        server.serve_method("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)
        server.hear("notifications/initialized", NotificationParams, self._begun)

    def close(self) -> None:
        """End every stream as the protocol wants it: with its result."""
        for stream in list(self._streams):
            stream.cancel()

    # -- 2026-07-28 ---------------------------------------------------------------------------------------------------

    async def _listen(self, ctx: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        wanted = params.notifications
        task_ids = _task_ids(wanted)
        if task_ids:
            require_client_extension(ctx, TASKS)
        known = [one for one in task_ids if await self._server.tasks.known(one, ctx) is not None]
        meta = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}

        async def send(change: Change) -> None:
            notification = await self._notification(change, ctx, meta)
            if notification is not None:
                await ctx.session.send_notification(notification, related_request_id=ctx.request_id)

        honored = SubscriptionFilter.model_validate(
            {
                "resourcesListChanged": True if wanted.resources_list_changed else None,
                "resourceSubscriptions": wanted.resource_subscriptions or None,
                **({TASK_IDS: known} if known else {}),
            }
        )
        subscriber = self._subscriber(send)
        await self._want_lists(subscriber, honored)
        _add(subscriber.want, honored.resource_subscriptions or [])
        _add(subscriber.want_task, known)
        acknowledged = SubscriptionsAcknowledgedNotificationParams(notifications=honored, _meta=meta)
        with anyio.CancelScope() as stream:
            self._streams.add(stream)
            try:
                await ctx.session.send_notification(
                    SubscriptionsAcknowledgedNotification(params=acknowledged), related_request_id=ctx.request_id
                )
                await subscriber.run()
            finally:
                self._streams.discard(stream)
        return SubscriptionsListenResult(_meta=meta)

    async def _notification(self, change: Change, ctx: Context, meta: dict[str, Any]) -> ServerNotification | None:
        if not isinstance(change, TaskChanged):
            return event_to_notification(change, meta)
        task = await self._server.tasks.known(change.task_id, ctx)
        if task is None:
            return None
        return cast("ServerNotification", TaskNotification(params={"_meta": meta, **detailed(task)}))

    # -- the handshake revisions --------------------------------------------------------------------------------------

    async def _begun(self, ctx: Context, _: NotificationParams) -> None:
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            await self._of_connection(ctx)

    async def _subscribe(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        _add((await self._of_connection(ctx)).want, [str(params.uri)])
        return EmptyResult()

    async def _unsubscribe(self, ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        (await self._of_connection(ctx)).want_no_more(str(params.uri))
        return EmptyResult()

    async def _of_connection(self, ctx: Context) -> Subscriber:
        """The one of this connection, which is told until the connection ends."""
        kept = state_of(ctx)
        if SUBSCRIBER not in kept:
            session = ctx.session

            async def send(change: Change) -> None:
                if not isinstance(change, TaskChanged):
                    await session.send_notification(event_to_notification(change, {}))

            kept[SUBSCRIBER] = subscriber = self._subscriber(send)
            scope = anyio.CancelScope()
            at_end(ctx, scope.cancel)
            ctx.lifespan_context.start_soon(_run_within, subscriber, scope)
            await self._want_lists(subscriber, SubscriptionFilter(resources_list_changed=True))
        return kept[SUBSCRIBER]

    async def _want_lists(self, subscriber: Subscriber, lists: SubscriptionFilter) -> None:
        """A client that was answered before this server was there has a list of resources without runs."""
        subscriber.want_lists(lists)
        if self._list_is_old and lists.resources_list_changed:
            self._list_is_old = False
            with suppress(MassgenError):  # without a store there is nothing to list
                if await self._service.recent(limit=1):
                    subscriber.tell(ResourcesListChanged())

    def _subscriber(self, send: Callable[[Change], Awaitable[None]]) -> Subscriber:
        return Subscriber(self._service, self._server.changes, send)


async def _run_within(subscriber: Subscriber, scope: anyio.CancelScope) -> None:
    """What goes wrong with one client concerns no other one."""
    with scope:
        try:
            await subscriber.run()
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass  # the client is gone
        except Exception:
            logger.exception("a client is not told of changes any more")


def _task_ids(wanted: SubscriptionFilter) -> list[str]:
    given: object = (wanted.model_extra or {}).get(TASK_IDS)
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(one, str) for one in cast("list[object]", given)):
        raise MCPError(INVALID_PARAMS, "taskIds must be a list of texts")
    return cast("list[str]", given)


def _add(want: Callable[[str], None], wanted: list[str]) -> None:
    try:
        for one in wanted:
            want(one)
    except MassgenError as error:
        raise MCPError(INVALID_PARAMS, str(error)) from error
