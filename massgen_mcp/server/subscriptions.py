"""What one client wants to hear of, and word of it as it happens: whoever executes a run tells, so nobody has to look.

Each change is a hint to look again, so changes that come while another one is being sent are told once.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup
from mcp.server.subscriptions import ResourceUpdated, ServerEvent, SubscriptionBus
from mcp.shared.subscriptions import event_matches
from mcp.types import SubscriptionFilter

from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.addresses import View, run_in
from massgen_mcp.server.client.decisions import question_key

logger = logging.getLogger(__name__)

MOST = 100
"""A client can follow so many resources and tasks at once."""
REST_SECONDS = 0.5
"""Between two times that something is sent."""
AGAIN_SECONDS = 5.0
"""After so long a run is looked at again that could not be read."""
AT_MILESTONES: tuple[View, ...] = ("result", "artifacts")
"""What does not change with every event, only with the state or the phase of the run."""


@dataclass(frozen=True, slots=True)
class TaskChanged:
    task_id: str


Change = ServerEvent | TaskChanged


class Subscriber:
    """One client. `send` is given each change that it wants."""

    def __init__(self, service: RunService, bus: SubscriptionBus, send: Callable[[Change], Awaitable[None]]) -> None:
        self._service, self._bus, self._send = service, bus, send
        self._lists = SubscriptionFilter()
        self._uris: dict[str, None] = {}
        self._tasks: dict[str, None] = {}
        self._pending: dict[Change, None] = {}
        self._news = anyio.Event()
        self._group: TaskGroup | None = None
        self._followed: dict[str, anyio.CancelScope] = {}

    def want_lists(self, lists: SubscriptionFilter) -> None:
        """Hear when the lists change whose flags are set."""
        self._lists = lists

    def want(self, uri: str) -> None:
        """Hear of a resource. Raises `MassgenError` invalid_arguments when there are too many."""
        if uri not in self._uris and len(self._uris) + len(self._tasks) >= MOST:
            raise MassgenError("invalid_arguments", f"at most {MOST} resources and tasks can be followed at once")
        self._uris[uri] = None
        if run := run_in(uri):
            self._follow(run[0])

    def want_no_more(self, uri: str) -> None:
        self._uris.pop(uri, None)
        if run := run_in(uri):
            run_id = run[0]
            if run_id not in self._tasks and not self._shown(run_id) and (scope := self._followed.pop(run_id, None)):
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

    def _shown(self, run_id: str) -> list[tuple[str, View]]:
        """What is wanted of a run: the address, and what it shows."""
        return [(uri, found[1]) for uri in self._uris if (found := run_in(uri)) and found[0] == run_id]

    def _heard(self, event: ServerEvent) -> None:
        if event_matches(self._lists, frozenset(self._uris), event):
            self.tell(event)

    def tell(self, change: Change) -> None:
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
        async with aclosing(self._service.watch(run_id)) as looks:
            async for view in looks:
                before, milestone = milestone, _milestone(view)
                if before != milestone and run_id in self._tasks:
                    self.tell(TaskChanged(run_id))
                if seq is not None and (seq, before) != (view.snapshot.seq, milestone):
                    for uri, shown in self._shown(run_id):
                        if shown not in AT_MILESTONES or before != milestone:
                            self.tell(ResourceUpdated(uri))
                seq = view.snapshot.seq


def _milestone(view: RunView) -> tuple[object, ...]:
    return view.state, view.snapshot.phase, view.stands_still, question_key(view)
