"""How clients are told of changes: `subscriptions/listen` of 2026-07-28, where the answer to one request is the stream,
and the notifications of a connection of the handshake revisions, with `resources/subscribe`.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver.server import require_client_extension
from mcp.server.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    SubscriptionBus,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import event_matches, event_to_notification
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
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.server.connection import at_end, state_of
from massgen_mcp.server.decisions import question_key
from massgen_mcp.server.resources import RunResource, run_in
from massgen_mcp.server.tasks import TASKS, detailed

MOST = 100
"""A client can follow so many resources and tasks at once."""
REST_SECONDS = 0.5
"""Between two times that something is sent."""
AGAIN_SECONDS = 5.0
"""After so long a run is looked at again that could not be read."""
AT_MILESTONES: tuple[RunResource, ...] = ("result", "artifacts")
"""What does not change with every event, only with the state or the phase of the run."""


@dataclass(frozen=True, slots=True)
class TaskChanged:
    task_id: str


Heard = ServerEvent | TaskChanged


class Subscriber:
    """One client. `send` is given each change that it wants."""

    def __init__(self, service: RunService, bus: SubscriptionBus, send: Callable[[Heard], Awaitable[None]]) -> None:
        self._service, self._bus, self._send = service, bus, send
        self._user = service.access.user
        self._lists = SubscriptionFilter()
        self._uris: dict[str, None] = {}
        self._tasks: dict[str, None] = {}
        self._pending: dict[Heard, None] = {}
        self._news = anyio.Event()
        self._group: TaskGroup | None = None
        self._followed: dict[str, anyio.CancelScope] = {}

    def want_lists(self, lists: SubscriptionFilter) -> None:
        """Hear when the lists change whose flags are set."""
        self._lists = lists

    def want(self, uri: str) -> None:
        """Hear of a resource. Raises `MassgenError` invalid_arguments when there are too many."""
        if uri not in self._uris and len(self._uris) + len(self._tasks) >= MOST:
            raise MassgenError("invalid_arguments", f"you can subscribe to at most {MOST} resources and tasks at once")
        self._uris[uri] = None
        if run := run_in(uri):
            self._follow(run[0])

    def want_no_more(self, uri: str) -> None:
        self._uris.pop(uri, None)
        if run := run_in(uri):
            run_id = run[0]
            if (
                run_id not in self._tasks
                and not self._wanted_views(run_id)
                and (scope := self._followed.pop(run_id, None))
            ):
                scope.cancel()

    def want_task(self, task_id: str) -> None:
        """Hear of a task that is a run, at once and whenever it has changed."""
        self._tasks[task_id] = None
        self._follow(task_id)

    async def run(self) -> None:
        """Tell until it is cancelled."""
        forget = self._bus.subscribe(self._heard)
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                for run_id in list(self._followed):
                    self._start_following(group, run_id)
                while True:
                    await self._news.wait()
                    self._news = anyio.Event()
                    pending, self._pending = self._pending, {}
                    for change in pending:
                        await self._send(change)
                    await anyio.sleep(REST_SECONDS)
        finally:
            self._group = None
            forget()

    def _wanted_views(self, run_id: str) -> list[tuple[str, RunResource]]:
        """What is wanted of a run: the address, and what it shows."""
        return [(uri, found[1]) for uri in self._uris if (found := run_in(uri)) and found[0] == run_id]

    def _heard(self, event: ServerEvent) -> None:
        """Pass on what the same user has done; another user's actions stay private."""
        if self._service.access.user == self._user and event_matches(self._lists, frozenset(self._uris), event):
            self.tell(event)

    def tell(self, change: Heard) -> None:
        """Whatever the client wants."""
        self._pending[change] = None
        self._news.set()

    def _follow(self, run_id: str) -> None:
        if run_id not in self._followed:
            self._followed[run_id] = anyio.CancelScope()
            if self._group is not None:
                self._start_following(self._group, run_id)

    def _start_following(self, group: TaskGroup, run_id: str) -> None:
        group.start_soon(self._look_after, run_id, self._followed[run_id])

    async def _look_after(self, run_id: str, scope: anyio.CancelScope) -> None:
        """Until the run has ended, or is none."""
        with scope:
            while True:
                try:
                    await self._tell_of(run_id)
                except MassgenError as error:
                    if error.code in ("store_unavailable", "disk_full"):
                        await anyio.sleep(AGAIN_SECONDS)
                        continue
                return

    async def _tell_of(self, run_id: str) -> None:
        seq: int | None = None
        milestone: tuple[object, ...] | None = None
        async with aclosing(self._service.watcher.watch(run_id)) as looks:
            async for view in looks:
                before, milestone = milestone, _milestone(view)
                if before != milestone and run_id in self._tasks:
                    self.tell(TaskChanged(run_id))
                if seq is not None and (seq, before) != (view.snapshot.seq, milestone):
                    for uri, shown in self._wanted_views(run_id):
                        if shown not in AT_MILESTONES or before != milestone:
                            self.tell(ResourceUpdated(uri))
                seq = view.snapshot.seq


def _milestone(view: RunView) -> tuple[object, ...]:
    return view.state, view.snapshot.phase, view.stands_still, question_key(view)


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

        async def send(change: Heard) -> None:
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

    async def _notification(self, change: Heard, ctx: Context, meta: dict[str, Any]) -> ServerNotification | None:
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

            async def send(change: Heard) -> None:
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
                if await self._service.watcher.list_runs(limit=1):
                    subscriber.tell(ResourcesListChanged())

    def _subscriber(self, send: Callable[[Heard], Awaitable[None]]) -> Subscriber:
        return Subscriber(self._service, self._server.changes, send)


async def _run_within(subscriber: Subscriber, scope: anyio.CancelScope) -> None:
    """What goes wrong with one client concerns no other one."""
    with scope:
        try:
            await subscriber.run()
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass  # the client is gone
        except Exception:
            logger.exception("stopped notifying a client of changes")


def _task_ids(wanted: SubscriptionFilter) -> list[str]:
    given: object = (wanted.model_extra or {}).get(TASK_IDS)
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(one, str) for one in cast("list[object]", given)):
        raise MCPError(INVALID_PARAMS, "taskIds must be a list of strings")
    return cast("list[str]", given)


def _add(want: Callable[[str], None], wanted: list[str]) -> None:
    try:
        for one in wanted:
            want(one)
    except MassgenError as error:
        raise MCPError(INVALID_PARAMS, str(error)) from error
