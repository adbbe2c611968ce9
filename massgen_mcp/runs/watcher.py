"""Runs as they are now, and again whenever something happens in them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Literal

import anyio.to_thread

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.record import LogRecord
from massgen_mcp.request.question import check_text
from massgen_mcp.runs.access import RunAccess
from massgen_mcp.runs.engine import SINGLE_RUNS, RunFilter, RunRow
from massgen_mcp.runs.store.finding import find_run
from massgen_mcp.runs.view.run_view import RunView, looks
from massgen_mcp.threads import in_thread
from massgen_mcp.workspace.guard import safe_id

Until = Literal["terminal", "phase", "change"]

SEARCHED_AT_ONCE = 500
"""So many rows are read at once where most of them may not be wanted."""


class RunWatcher:
    """The runs that the current user may see. Whoever looks at a run that has lost its runner gets it another one."""

    def __init__(self, access: RunAccess) -> None:
        self._access = access
        self._waiting_ends = False
        self._waits: set[anyio.CancelScope] = set()

    @in_thread
    def get_run(self, run_id: str) -> RunView:
        """Return the run as it is now; if its runner was lost, another one is started. Raises `MassgenError`
        unknown_run, expired, store_unavailable.
        """
        return self.read_run(run_id)

    def read_run(self, run_id: str) -> RunView:
        """Do what `get_run` does, in the calling thread."""
        view = self._access.get_watch(run_id).look()
        self._access.dispatch.care_for(view)
        return view

    @in_thread
    def find_run_id(self, beginning: str, *, to_change: bool = False) -> str:
        """Return the id of the run that is meant by the beginning of an id. Raises as `find_run`."""
        return find_run(self._access.engine.store.index, beginning, to_change=to_change)

    @in_thread
    def list_turns(self, session_id: str) -> list[RunView]:
        """Return the runs of a session, oldest first; of those that have ended what the store knows. None: nobody knows
        it. Raises `MassgenError` invalid_arguments, store_unavailable.
        """
        return self._access.sessions.runs(safe_id(session_id, "session id"))

    @in_thread
    def list_runs(
        self,
        wanted: RunFilter = SINGLE_RUNS,
        *,
        before: int | None = None,
        limit: int,
        keep: Callable[[RunRow], bool] | None = None,
    ) -> list[RunView]:
        """Return runs, newest first; damaged and expired runs are there with what the store knows of them. `before`:
        the number of the last row of the page before; `keep`: only rows for which it is true. Raises `MassgenError`
        invalid_arguments.
        """
        if wanted.session_id is not None:
            check_text("session_id", wanted.session_id)
        state = wanted.state
        known = "running" if state == "input_required" else state  # the store does not tell these two apart
        views, last = list[RunView](), before
        at_once = limit if keep is None else max(limit, SEARCHED_AT_ONCE)
        while len(views) < limit and (
            found := self._access.engine.store.index.list_recent(
                replace(wanted, state=known), before=last, limit=at_once
            )
        ):
            seen = map(self._access.glance, found if keep is None else filter(keep, found))
            chosen = (view for view in seen if known != "running" or view.state == state)
            views += islice(chosen, limit - len(views))
            last = found[-1].number
        return views

    @in_thread
    def list_interrupted(self, directory: Path) -> list[RunView]:
        """Return the runs below this directory whose process is gone and that can be continued, newest first."""
        views: list[RunView] = []
        for row in self._access.engine.store.index.find_unfinished(directory):
            with suppress(MassgenError):  # its files are gone, or cannot be read
                views.append(self._access.get_watch(row.run_id).look())
        return [view for view in views if view.state == "interrupted" and not (view.damage or view.newer)]

    async def wait(self, run_id: str, *, until: Until, seconds: float, cursor: int | None) -> RunView:
        """Wait until the run has ended (`terminal`), its state or phase has changed (`phase`), or anything happened
        after event number `cursor` (`change`); at most `seconds`, and no longer than until `stop_waiting`.
        """
        view = await self.get_run(run_id)
        before = (view.state, view.snapshot.phase)
        seen = view.snapshot.seq if cursor is None else cursor

        def is_over() -> bool:
            if view.stands_still:
                return True
            match until:
                case "terminal":
                    return False
                case "phase":
                    return (view.state, view.snapshot.phase) != before
                case "change":
                    return view.snapshot.seq > seen

        if is_over() or self._waiting_ends:
            return view
        with anyio.CancelScope(deadline=anyio.current_time() + seconds) as scope:
            self._waits.add(scope)
            try:
                async with aclosing(
                    looks(view, self.get_run, self._access.engine.liveness, milestones=until != "change")
                ) as found:
                    async for view in found:
                        if is_over():
                            return view
            finally:
                self._waits.discard(scope)
        return await self.get_run(run_id)

    async def follow(
        self, run_id: str, *, text: bool = True, past_questions: bool = False
    ) -> AsyncGenerator[tuple[RunView, list[LogRecord]]]:
        """Yield what has happened in the run since it began, as it happens, until it has ended or needs its caller;
        with each new piece the run as it was before. A piece has no events where those it is newer by were given
        before. `text`: with what agents write while they write it (see `EventLog.follow`); `past_questions`: also while
        the run waits for an answer of its caller, who may give it meanwhile.
        """

        def is_over(view: RunView) -> bool:
            return view.stands_still and not (past_questions and view.state == "input_required")

        view = await self.get_run(run_id)
        shown = view.state, view.snapshot.seq
        events = view.directory.event_log.follow(text=text)
        yield view, await anyio.to_thread.run_sync(events.read)
        if is_over(view):
            return
        async with aclosing(looks(view, self.get_run, self._access.engine.liveness)) as found:
            async for view in found:
                last = is_over(view)  # before reading: nothing more is written for now
                before, shown = shown, (view.state, view.snapshot.seq)
                # What was written between the last look and its read is no news, but only this view holds it.
                if (records := await anyio.to_thread.run_sync(events.read)) or last or shown != before:
                    yield view, records
                if last:
                    return

    async def watch(self, run_id: str) -> AsyncGenerator[RunView]:
        """Yield the run as it is now, and again whenever there is something new, until it has ended. Raises as
        `get_run`.
        """
        view = await self.get_run(run_id)
        yield view
        if view.ended:
            return
        async with aclosing(looks(view, self.get_run, self._access.engine.liveness)) as found:
            async for view in found:
                yield view
                if view.ended:
                    return

    def stop_waiting(self) -> None:
        """Let every `wait`, also a later one, return with the run as it is: the process has to leave."""
        self._waiting_ends = True
        for wait in list(self._waits):
            wait.cancel()
