"""Runs as the outside sees them: start one durably, look at it, wait for it, control it.

Holds no run state: everything is read from the store and the journals, so any process gives the same answers. Must not
know MCP, command lines or models.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread

from massgen_mcp.config.held_keys import redactor_for
from massgen_mcp.config.key_hosts import describe_refusal
from massgen_mcp.config.loader import missing_keys, refused_keys, require_keys
from massgen_mcp.config.models import Config, EarlierTurn
from massgen_mcp.errors import JournalNewer, MassgenError, storage_fault
from massgen_mcp.redaction import Redactor
from massgen_mcp.request.question import check_text, is_unicode
from massgen_mcp.request.run_request import RunRequest
from massgen_mcp.runs.checks import check_action, checked_raise
from massgen_mcp.runs.credentials import identity
from massgen_mcp.runs.engine import Engine, FileStore
from massgen_mcp.runs.engine.rows import (
    RUN_ID_PREFIX,
    Action,
    Added,
    NewRun,
    RunRow,
    SessionMoved,
    new_run_id,
    unknown_run,
)
from massgen_mcp.runs.retention import Pruned, prune, prune_named
from massgen_mcp.runs.run_view import RunView, RunWatch
from massgen_mcp.runs.sessions import History, recall
from massgen_mcp.views.snapshot import TERMINAL_STATES, RunSnapshot, RunState
from massgen_mcp.workspace.guard import safe_id

Until = Literal["terminal", "phase", "change"]

MAX_TURNS_RECALLED = 200
WAIT_STEPS = (0.01, 0.05)
"""A waiting call looks at the run this often, in seconds: at first, and after the first second."""
CARE_SECONDS = 1.0
"""A waiting call looks this often whether the run has a runner: it may be lost while we wait."""


class RunManager:
    """The runs of one engine, seen from one environment. A store that cannot be used is an error of each call, not of
    this object: it works as soon as the store does.
    """

    def __init__(self, engine: Engine, environ: Mapping[str, str]) -> None:
        self._engine = engine
        self._store, self._files, self._liveness = engine.store, engine.files, engine.liveness
        self._environ = environ
        self._waiting_ends = False
        with suppress(MassgenError):
            engine.home.ensure()

    def close(self) -> None:
        self._engine.close()

    def stop_waiting(self) -> None:
        """Let every `wait`, also a later one, return with the run as it is: the process has to leave."""
        self._waiting_ends = True

    async def start(self, request: RunRequest) -> tuple[RunView, bool]:
        """Start a run in the background; it is durable when this returns. True: it is an earlier run of the same key.

        `on_conflict` says what to do when the key is taken (see `RunStore.add`). A turn of a session is told question
        and answer of the turns before it; only one turn of a session may be on its way.

        Raises `MassgenError`: invalid_arguments, idempotency_conflict, session_busy, queue_full, disk_full,
        store_unavailable.
        """
        if request.session_id is not None:
            safe_id(request.session_id, "session id")
        added, history = await anyio.to_thread.run_sync(self._enqueue, request)
        view = await self.look(added.row.run_id)
        await anyio.to_thread.run_sync(self._see_to, view)
        if added.replaced is not None:
            await anyio.to_thread.run_sync(self._liveness.wake, added.replaced.fingerprint)
        return replace(view, note=history.note), added.reused

    async def look(self, run_id: str) -> RunView:
        """The run as it is now; if its runner was lost, another one is started. Raises `MassgenError` unknown_run,
        expired, store_unavailable.
        """
        view = await anyio.to_thread.run_sync(self._watch(run_id).look)
        await anyio.to_thread.run_sync(self._care_for, view)
        return view

    async def find(self, beginning: str) -> str:
        """The id of the one run whose id begins so, `run-` put before it or not. Raises `MassgenError` unknown_run."""
        if not is_unicode(beginning):
            raise unknown_run(beginning)
        prefix = beginning if beginning.startswith(RUN_ID_PREFIX) else f"{RUN_ID_PREFIX}{beginning}"
        found = await anyio.to_thread.run_sync(self._store.beginning_with, prefix, 2) if beginning else []
        if len(found) > 1 and prefix not in found:
            raise MassgenError("unknown_run", f"several runs begin with {beginning[:80]!r}; write more of the id")
        return prefix if len(found) != 1 else found[0]

    async def wait(self, run_id: str, *, until: Until, seconds: float, cursor: int | None) -> RunView:
        """Wait until the run has ended (`terminal`), its state or phase has changed (`phase`), or anything happened
        after event number `cursor` (`change`); at most `seconds`, and no longer than until `stop_waiting`.
        """
        watch = self._watch(run_id)
        view = await anyio.to_thread.run_sync(watch.look)
        await anyio.to_thread.run_sync(self._care_for, view)
        before = (view.state, view.snapshot.phase)
        seen = view.snapshot.seq if cursor is None else cursor
        began = anyio.current_time()
        care = began + CARE_SECONDS
        while not (view.stands_still or self._waiting_ends) and (waited := anyio.current_time() - began) < seconds:
            if until == "change" and view.snapshot.seq > seen:
                break
            if until == "phase" and (view.state, view.snapshot.phase) != before:
                break
            await anyio.sleep(WAIT_STEPS[waited > 1])
            view = await anyio.to_thread.run_sync(watch.look)
            if anyio.current_time() >= care:
                await anyio.to_thread.run_sync(self._care_for, view)
                care = anyio.current_time() + CARE_SECONDS
        return view

    async def control(
        self, run_id: str, action: Action | Literal["resume"], message: str = "", value: float | None = None
    ) -> RunView:
        """Ask for something to be done with the run: `steer` shows `message` to all agents, `answer` is what the caller
        decided where input is required, `raise_budget` makes `value` the new `max_usd`, `resume` lets an interrupted
        run go on with the keys of this process. Asking an ended run to end changes nothing.

        Raises `MassgenError` unknown_run, invalid_arguments, invalid_action, missing_key, journal_newer.
        """
        if action == "resume":
            return await self._resume(run_id)
        view = await self.look(run_id)
        if action == "raise_budget":
            message = checked_raise(view, value)
        check_action(view, action, message)
        if message:
            message = self._redactor(view.directory.read_request().config).text(message)
        await anyio.to_thread.run_sync(self._store.want, run_id, action, message)
        view = await self.look(run_id)
        await anyio.to_thread.run_sync(self._see_to, view)
        return view

    async def _resume(self, run_id: str) -> RunView:
        view = await self.look(run_id)
        if view.state == "interrupted":
            if view.newer is not None:
                raise view.newer
            await anyio.to_thread.run_sync(self._adopt, view)
            view = await self.look(run_id)
        elif view.state in TERMINAL_STATES:
            raise MassgenError(
                "invalid_action", f"run {run_id} is {view.state}; only an interrupted run can be resumed"
            )
        return view

    async def recent(
        self,
        *,
        state: RunState | None = None,
        session_id: str | None = None,
        since: float | None = None,
        before: int | None = None,
        limit: int,
    ) -> list[RunView]:
        """Newest first; damaged and expired runs are there with what the store knows of them. `since`: seconds since
        the epoch; `before`: the number of the last row of the page before. Raises `MassgenError` invalid_arguments.
        """
        if session_id is not None:
            check_text("session_id", session_id)

        def page(before: int | None) -> list[RunView]:
            known = "running" if state == "input_required" else state  # the store does not tell these two apart
            found = self._store.recent(state=known, session_id=session_id, since=since, before=before, limit=limit)
            return [self._look_or_row(row) for row in found]

        def rows() -> list[RunView]:
            views, last = list[RunView](), before
            while len(views) < limit and (found := page(last)):
                views += [view for view in found if _is_so(view, state)]
                last = found[-1].row.number
            return views[:limit]

        return await anyio.to_thread.run_sync(rows)

    async def interrupted_below(self, directory: Path) -> list[RunView]:
        """The runs below this directory whose process is gone and that can be continued, newest first."""

        def found() -> Iterator[RunView]:
            for row in self._store.unfinished_below(directory):
                with suppress(MassgenError):  # its files are gone, or cannot be read
                    yield self._watch(row.run_id).look()

        views = await anyio.to_thread.run_sync(lambda: list(found()))
        return [view for view in views if view.state == "interrupted" and not (view.damage or view.newer)]

    async def look_at(self, directory: Path) -> RunView | None:
        """The run that has this directory of its own, as `look` tells of it; None if the store knows no such run."""
        row = await anyio.to_thread.run_sync(self._store.at, directory)
        return None if row is None else await self.look(row.run_id)

    async def prune(self, *, dry_run: bool = False, older_than: float | None = None) -> Pruned:
        """Delete workspaces and results that are older than the limits (see `retention.prune`)."""

        def pruned() -> Pruned:
            self._engine.home.ensure()
            return prune(self._engine, dry_run=dry_run, older_than=older_than)

        return await anyio.to_thread.run_sync(pruned)

    async def prune_named(self, run_ids: Sequence[str], *, dry_run: bool = False) -> Pruned:
        """Delete everything of these runs (see `retention.prune_named`). Raises `MassgenError` unknown_run."""

        def pruned() -> Pruned:
            rows = [self._watch(run_id).row() for run_id in run_ids]
            return prune_named(self._engine, rows, dry_run=dry_run)

        return await anyio.to_thread.run_sync(pruned)

    # -- plumbing -------------------------------------------------------------------------------------------------

    def _enqueue(self, request: RunRequest) -> tuple[Added, History]:
        """Directory first, row last: a run that the store knows is whole."""
        self._engine.home.ensure()
        run = NewRun(
            new_run_id(),
            request.question,
            request.source,
            fingerprint=self._identity(request.config),
            request_hash=_hash(request),
            idempotency_key=request.idempotency_key,
            session_id=request.session_id,
        )
        if (added := self._store.reusable(run, request.on_conflict)) is not None:
            return added, History()
        with self._files.making():
            while True:
                try:
                    history, over = self._history(request.session_id)
                    self._files.create(run.run_id, request.question, request.config, history.turns, request.redactor)
                    added = self._store.add(
                        replace(run, turns_over=over),
                        on_conflict=request.on_conflict,
                        max_queued=self._engine.home.limits.queued,
                    )
                except SessionMoved:
                    self._files.discard(run.run_id)
                except BaseException as error:
                    if not _may_be_stored(self._files, run.run_id, error):
                        with suppress(OSError):  # the next pruning tries again
                            self._files.discard(run.run_id)
                    raise
                else:
                    break
        if added.reused:
            self._files.discard(run.run_id)
        return added, history

    def _history(self, session_id: str | None) -> tuple[History, frozenset[int]]:
        """What the next turn of the session is told, and the numbers of the turns that are over."""
        if session_id is None:
            return History(), frozenset()
        views = [self._look_or_row(row) for row in self._store.recent(session_id=session_id, limit=MAX_TURNS_RECALLED)]
        over = [view for view in views if view.state in TERMINAL_STATES]
        return recall(self._turns(over)), frozenset(view.row.number for view in over)

    def _turns(self, views: list[RunView]) -> Iterator[EarlierTurn | None]:
        """The turns that have an answer; None for one whose answer is gone."""
        for listed in views:
            if listed.state == "failed":
                continue
            try:
                view = self._watch(listed.row.run_id).look()
            except MassgenError:
                yield None
                continue
            if view.damage is not None:
                yield None
            elif answer := view.snapshot.best_answer:
                yield EarlierTurn(question=view.snapshot.question, answer=answer)

    def _care_for(self, view: RunView) -> None:
        """Send for a runner if the run needs one that is not there."""
        state = view.row.state
        if state == "interrupted" or (state == "queued" and not self._liveness.runner_alive(view.row.fingerprint)):
            self._see_to(view)

    def _see_to(self, view: RunView) -> None:
        """Wake the run's runner; if there is none, start one, provided that this process has the same credentials. The
        server that started the run may have died before it did so.
        """
        if view.newer or view.row.foreground or view.row.state in TERMINAL_STATES:
            return  # nobody may work on it, or the process that asked does
        if self._liveness.wake(view.row.fingerprint):
            return
        try:
            config = view.directory.read_request().config
        except JournalNewer:
            self._store.set_aside(view.row.run_id)
            return
        if self._identity(config) == view.row.fingerprint:
            self._liveness.ensure_runner(view.row.fingerprint, self._environ)

    def _adopt(self, view: RunView) -> None:
        config = view.directory.read_request().config
        require_keys(config, self._environ)
        self._store.adopt(view.row.run_id, self._identity(config))
        self._liveness.ensure_runner(self._identity(config), self._environ)

    def _held_up(self, row: RunRow) -> str | None:
        """Why this process cannot send a runner after an interrupted run."""
        config = self._files.of(row).read_request().config
        if refused := refused_keys(config, self._environ):
            return describe_refusal(refused)
        if missing := missing_keys(config, self._environ):
            return f"{', '.join(missing)} is not set here"
        if row.foreground:
            return "the program that executed it ended; control_run resume lets a runner continue it"
        if self._identity(config) != row.fingerprint:
            return "it was started with other keys than those set here; control_run resume takes these"
        return None

    def _identity(self, config: Config) -> str:
        return identity(config, self._environ, self._engine.home)

    def _redactor(self, config: Config) -> Redactor:
        """What takes the keys of this environment out of what is stored."""
        return redactor_for(self._environ, [agent.backend for agent in config.agents])

    def _look_or_row(self, row: RunRow) -> RunView:
        """What the store knows is enough for a run that has ended, or whose record cannot be read."""
        if row.state not in TERMINAL_STATES:
            with suppress(MassgenError):
                return self._watch(row.run_id).look()
        snapshot = RunSnapshot(run_id=row.run_id, question=row.question, state=row.state)
        return RunView(row, snapshot, self._files.of(row))

    def _watch(self, run_id: str) -> RunWatch:
        return RunWatch(self._engine, run_id, self._held_up)


def _may_be_stored(files: FileStore, run_id: str, error: BaseException) -> bool:
    """Whether a run that could not be added may turn out to have been: a write that the storage did not confirm can
    still be there later. If it is not, pruning finds a directory that no run has.
    """
    return storage_fault(error) is not None and files.created(run_id)


def _is_so(view: RunView, state: RunState | None) -> bool:
    """Whether a run that the store gave for this state is in it; it alone knows that it waits for its caller."""
    return state not in ("running", "input_required") or view.state == state


def _hash(request: RunRequest) -> str:
    document = json.dumps(
        [request.question, request.config.model_dump(mode="json"), request.session_id], sort_keys=True
    )
    return hashlib.sha256(document.encode()).hexdigest()
