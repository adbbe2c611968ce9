"""Runs as the outside sees them: start one durably, look at it, wait for it, control it.

Holds no run state: everything is read from the store and the journals, so any process gives the same answers. Must not
know MCP, command lines or models.
"""

import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import anyio.to_thread

from massgen_mcp.changes.apply_records import applied_at
from massgen_mcp.changes.git import is_address
from massgen_mcp.config.access import members
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.adjusted import with_places
from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.record import LogRecord
from massgen_mcp.home import enclosing_run
from massgen_mcp.money.estimate import Usual, classify_work
from massgen_mcp.people import ask_as, environ_asked, is_guest
from massgen_mcp.request.build import RunRequest
from massgen_mcp.request.question import check_text
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import TERMINAL_STATES, RunStatus
from massgen_mcp.runs.checks import check_action, check_mark, checked_raise
from massgen_mcp.runs.consent import RunDemands, read_demands
from massgen_mcp.runs.engine import (
    Action,
    AuditEntry,
    DamagedJournal,
    Engine,
    RunFiles,
    RunRow,
    StateFigures,
)
from massgen_mcp.runs.moving import MovedIn, MovedOut, move_in, move_out
from massgen_mcp.runs.patches.application import Application, application_fields
from massgen_mcp.runs.patches.applying import ChangedText, RunPatch, apply_run
from massgen_mcp.runs.patches.earlier_changes import LaidOut, laid_out, with_earlier_changes
from massgen_mcp.runs.patches.given import UPLOADED
from massgen_mcp.runs.sessions.turns import SessionTurns, start_note
from massgen_mcp.runs.starting import Dispatch, ask_to_admit, enclosing, enqueue, frozen_request
from massgen_mcp.runs.store.counting import counted_runs
from massgen_mcp.runs.store.finding import find_run
from massgen_mcp.runs.store.retention import Pruned, prune, prune_named
from massgen_mcp.runs.view.run_view import KeptWatches, RunView, RunWatch, looks
from massgen_mcp.runs.view.status_file import note_application
from massgen_mcp.statistics.digest import Mark, RunDigest, Verdict, digest_of
from massgen_mcp.statistics.sums import NEWEST, Statistics, StatisticsFilter, statistics_of, usual_runs, usual_time
from massgen_mcp.threads import in_thread, run_in_stoppable_thread
from massgen_mcp.workspace.guard import safe_id

if TYPE_CHECKING:
    from massgen_mcp.page.build import GrowingPage
    from massgen_mcp.page.data import RunPage
    from massgen_mcp.page.left_out import Most

T = TypeVar("T")
Until = Literal["terminal", "phase", "change"]

SEARCHED_AT_ONCE = 500
"""So many rows are read at once where most of them may not be wanted."""
ELSEWHERE = (
    "context_paths and checks need directories on this machine, but a worker on another machine executes the "
    "run: pass https://HOST/PATH of a git repository, or upload a directory with `massgen start --context DIR`"
)
CLONED_ELSEWHERE = (
    "addresses of git repositories only work with a shared store's workers; name a directory on this machine"
)
NO_PROGRAMS = (
    "an agent of this team is a program with the rights of the server's account, so it could see all users' "
    "runs; use agents that are models"
)
WATCHES = 128
"""So many runs that go on are kept in memory as far as they have been read."""


class RunService:
    """The runs of one engine, seen from one environment. A store that cannot be used is an error of each call, not of
    this object: it works as soon as the store does.
    """

    def __init__(self, engine: Engine, environ: Mapping[str, str]) -> None:
        self._engine = engine
        self._store, self._files, self._liveness = engine.store, engine.files, engine.liveness
        self._own_environ = environ
        self._dispatch = Dispatch(engine, environ)
        self.sessions = SessionTurns(engine.store, self._look_or_row, lambda run_id: self._watches.of(run_id).look())
        self._watches = KeptWatches(lambda run_id: RunWatch(engine, run_id, self._dispatch.held_up), WATCHES)
        self._waiting_ends = False
        self._waits: set[anyio.CancelScope] = set()
        with suppress(MassgenError):
            engine.home.ensure()
            if (inside := enclosing_run(environ)) and (owner := self._store.get(inside).owner):
                ask_as(owner, environ)

    @property
    def environ(self) -> Mapping[str, str]:
        """What of this process's environment is for whoever asks."""
        return environ_asked(self._own_environ)

    @property
    def pool(self) -> str | None:
        """Of workers that execute the runs, with keys of their own; None: that is done with the keys here."""
        return self._engine.pool

    def close(self) -> None:
        self._engine.close()

    def stop_waiting(self) -> None:
        """Let every `wait`, also a later one, return with the run as it is: the process has to leave."""
        self._waiting_ends = True
        for wait in list(self._waits):
            wait.cancel()

    async def start(self, request: RunRequest) -> tuple[RunView, bool]:
        """Start a run in the background; it is durable when this returns. True: it is an earlier run of the same key.

        `on_conflict` says what to do when the key is taken (see `RunStore.add`). A turn of a session is told question
        and answer of the turns before it; only one turn of a session may be on its way.

        In a process that works inside a run it is nested in that one, and begins when that one admits it.

        Raises `MassgenError`: invalid_arguments, idempotency_conflict, session_busy, queue_full, nesting_refused,
        disk_full, store_unavailable.
        """
        places = [context.path for context in request.config.orchestrator.context_paths]
        if self._engine.pool is None and any(map(is_address, places)):
            raise MassgenError("invalid_arguments", CLONED_ELSEWHERE)
        if self._engine.pool is not None and not request.given.uploads and not all(map(is_address, places)):
            raise MassgenError("invalid_arguments", ELSEWHERE)
        if is_guest() and any(members.start_permissions(agent.backend) for agent in request.config.agents):
            raise MassgenError("invalid_arguments", NO_PROGRAMS)
        if request.given.session_id is not None:
            safe_id(request.given.session_id, "session id")

        def begun() -> tuple[RunView, bool]:
            outer = enclosing(self._engine, self.environ)
            frozen = frozen_request(request, outer, self.environ)
            if request.given.uploads:
                frozen = replace(frozen, config=with_places(frozen.config, lambda path: f"{UPLOADED}{path}"))
            added, history = enqueue(self._engine, self.sessions, request, frozen, self._dispatch.identity)
            if outer is not None and not added.row.admitted:
                ask_to_admit(self._engine, self.environ, outer, added.row.run_id)
            woken = self._liveness.wake(added.row.fingerprint)  # at once: the run waits for it
            view = self._looked(added.row.run_id)
            if not woken:
                self._dispatch.see_to(view)
            if added.replaced is not None:
                self._liveness.wake(added.replaced.fingerprint)
                self._liveness.announce(added.replaced, self._files.of(added.replaced))
            return replace(view, note=history.note), added.reused

        return await anyio.to_thread.run_sync(begun)

    @in_thread
    def start_note(self, request: RunRequest) -> str:
        """Whose changes the run would begin with, in words. Raises as `with_earlier_changes`."""
        ended = self.sessions.ended(request.given.session_id)
        begins = with_earlier_changes(frozen_request(request, None, {}), request, ended)
        return start_note(begins.begins_with)

    @in_thread
    def look(self, run_id: str) -> RunView:
        """The run as it is now; if its runner was lost, another one is started. Raises `MassgenError` unknown_run,
        expired, store_unavailable.
        """
        return self._looked(run_id)

    def _looked(self, run_id: str) -> RunView:
        view = self._watches.of(run_id).look()
        self._dispatch.care_for(view)
        return view

    @in_thread
    def turns(self, session_id: str) -> list[RunView]:
        """The runs of a session, oldest first; of those that have ended what the store knows. None: nobody knows it.
        Raises `MassgenError` invalid_arguments, store_unavailable.
        """
        return self.sessions.runs(safe_id(session_id, "session id"))

    @in_thread
    def find(self, beginning: str, *, to_change: bool = False) -> str:
        """The id of the run that is meant by the beginning of an id. Raises as `find_run`."""
        return find_run(self._store, beginning, to_change=to_change)

    async def wait(self, run_id: str, *, until: Until, seconds: float, cursor: int | None) -> RunView:
        """Wait until the run has ended (`terminal`), its state or phase has changed (`phase`), or anything happened
        after event number `cursor` (`change`); at most `seconds`, and no longer than until `stop_waiting`.
        """
        view = await self.look(run_id)
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
                async with aclosing(looks(view, self.look, self._liveness, milestones=until != "change")) as found:
                    async for view in found:
                        if is_over():
                            return view
            finally:
                self._waits.discard(scope)
        return await self.look(run_id)

    async def follow(
        self, run_id: str, *, text: bool = True, past_questions: bool = False
    ) -> AsyncGenerator[tuple[RunView, list[LogRecord]]]:
        """What has happened in the run since it began, as it happens, until it has ended or needs its caller; with each
        new piece the run as it was before. A piece has no events where those it is newer by were given before. `text`:
        with what agents write while they write it (see `EventLog.follow`); `past_questions`: also while the run waits
        for an answer of its caller, who may give it meanwhile.
        """

        def over(view: RunView) -> bool:
            return view.stands_still and not (past_questions and view.state == "input_required")

        view = await self.look(run_id)
        shown = view.state, view.snapshot.seq
        events = view.directory.event_log.follow(text=text)
        yield view, await anyio.to_thread.run_sync(events.read)
        if over(view):
            return
        async with aclosing(looks(view, self.look, self._liveness)) as found:
            async for view in found:
                last = over(view)  # before reading: nothing more is written for now
                before, shown = shown, (view.state, view.snapshot.seq)
                # What was written between the last look and its read is no news, but only this view holds it.
                if (records := await anyio.to_thread.run_sync(events.read)) or last or shown != before:
                    yield view, records
                if last:
                    return

    async def watch(self, run_id: str) -> AsyncGenerator[RunView]:
        """The run as it is now, and again whenever there is something new, until it has ended. Raises as `look`."""
        view = await self.look(run_id)
        yield view
        if view.ended:
            return
        async with aclosing(looks(view, self.look, self._liveness)) as found:
            async for view in found:
                yield view
                if view.ended:
                    return

    async def control(
        self, run_id: str, action: Action | Literal["resume"], message: str = "", value: float | None = None
    ) -> RunView:
        """Ask for something to be done with the run: `steer` shows `message` to all agents, `answer` is what the caller
        decided where input is required, `raise_budget` makes `value` the new `max_usd`, `resume` lets an interrupted
        run go on with the keys of this process. Asking an ended run to end changes nothing.

        Raises `MassgenError` unknown_run, invalid_arguments, invalid_action, missing_key, journal_newer.
        """
        if action == "resume":
            return await self.resume(run_id)
        view = await self.look(run_id)
        if action == "raise_budget":
            message = checked_raise(view, value)
        check_action(view, action, message)
        if message:
            backends = [agent.backend for agent in view.directory.read_request().config.agents]
            message = redactor_for(self.environ, backends).text(message)
        await anyio.to_thread.run_sync(self._store.want, run_id, action, message)
        view = await self.look(run_id)
        await anyio.to_thread.run_sync(self._dispatch.see_to, view)
        await anyio.to_thread.run_sync(self._liveness.announce, view.row, view.directory)
        return view

    @in_thread
    def read_demands(self, run_id: str) -> RunDemands | None:
        """Return what a run asks for that came from elsewhere and waits for consent; None for any other one."""
        return read_demands(self._engine, self._store.get(run_id), self.environ)

    async def resume(self, run_id: str, accepted: str | None = None) -> RunView:
        """Let an interrupted run go on with the keys of this process. `accepted`: the digest of what a person accepted,
        of a run that waits for consent. Raises as `control`, and `MassgenError` config_untrusted.
        """
        view = await self.look(run_id)
        if view.state == "interrupted":
            if view.newer is not None:
                raise view.newer
            await anyio.to_thread.run_sync(self._dispatch.adopt, view, accepted)
            view = await self.look(run_id)
        elif view.state in TERMINAL_STATES:
            raise MassgenError(
                "invalid_action", f"run {run_id} is {view.state}; you can only resume an interrupted run"
            )
        return view

    async def apply(
        self,
        run_id: str,
        *,
        dry_run: bool,
        agent: str | None = None,
        paths: Sequence[str] = (),
        branch: str | None = None,
        undo: bool = False,
        directory: Path | None = None,
    ) -> Application:
        """Bring what the winner changed, or `agent`, into the directories that the run was given with `write`, put it
        on a new branch, or take back what was brought in last (see `runs.patches.applying`). `directory`: what stands
        for the run's only one here.

        Raises `MassgenError` unknown_run, expired, not_finished, invalid_arguments, invalid_action, run_damaged,
        disk_full, store_unavailable.
        """
        view = await self.look(run_id)

        def done() -> Application:
            home = self._engine.home
            if not dry_run:
                self._store.note(view.row.run_id, "undo" if undo else "apply")
            ways = {"dry_run": dry_run, "undo": undo}
            made = apply_run(home, view, agent=agent, paths=paths, branch=branch, directory=directory, **ways)
            if not dry_run and agent is None:
                note_application(view.directory, view.snapshot, application_fields(made))
            if made.state in ("applied", "undone") and not dry_run and view.directory.report.exists():
                from massgen_mcp.runs.view.reporting import write_report  # no server starts with it

                with suppress(MassgenError, OSError):  # its page says so; without one nothing is worse
                    write_report(view.directory, view.snapshot, self._files_of, self.environ)
            return made

        return await anyio.to_thread.run_sync(done)

    @in_thread
    def changed_texts(self, view: RunView, planned: Application) -> list[ChangedText]:
        """What the files that an apply changes hold before and after; those that are no text, or too long, are left
        out. Raises `MassgenError` store_unavailable, run_damaged.
        """
        made = RunPatch.of(view.row.run_id, view.directory, view.snapshot.best_changes)
        return [] if made is None else made.texts(planned)

    @in_thread
    def page(self, view: RunView, *, redacted: bool = False) -> "RunPage":
        """What the page of a run shows, as the run stands in `view`. `redacted`: nothing that anybody wrote is in it.
        Raises `MassgenError` store_unavailable.
        """
        from massgen_mcp.runs.view.reporting import page_of  # no server starts with it

        return page_of(view.directory, view.snapshot, self._files_of, self.environ, redacted=redacted)

    @in_thread
    def page_that_fits(
        self, view: RunView, sizes: Iterable["Most"], taken: Callable[["RunPage"], T | None]
    ) -> T | None:
        """What `taken`, which is called in a thread, makes of the page in the first of these sizes of which it makes
        anything. Raises `MassgenError` store_unavailable.
        """
        from massgen_mcp.runs.view.reporting import smaller_pages_of  # no server starts with it

        pages = smaller_pages_of(view.directory, view.snapshot, self._files_of, self.environ, sizes)
        return next((found for page in pages if (found := taken(page)) is not None), None)

    async def pages(self, run_id: str) -> AsyncGenerator[tuple["RunPage", float]]:
        """The page of the run as it is now, with what agents are writing, and again whenever there is something new,
        until the run has ended or waits for somebody other than its caller; with each the seconds of work that drawing
        it took. A damaged record is drawn as far as it is whole. What happens between two pages is read once, so
        whoever takes his time gets fewer pages. Raises as `look`.
        """
        from massgen_mcp.runs.view.reporting import growing_page  # no server starts with it

        page: GrowingPage | None = None
        try:
            async with aclosing(self.follow(run_id, past_questions=True)) as news:
                async for view, records in news:
                    page = page or growing_page(view.directory, view.snapshot, self._files_of, self.environ)
                    drawn = await anyio.to_thread.run_sync(page.drawn, view.snapshot, records)
                    yield _noted(drawn, view), page.seconds
        except DamagedJournal:
            view = await self.look(run_id)
            yield _noted(await self.page(view), view), 0.0

    @in_thread
    def statistics(self, wanted: StatisticsFilter) -> Statistics:
        """What the runs that have ended come to. Raises `MassgenError` disk_full, store_unavailable."""
        runs, unread = counted_runs(self._engine, since=wanted.since, config=wanted.config)
        return statistics_of([run for run in runs if wanted.fits(run)], filters=wanted.filters, unread=unread)

    @in_thread
    def digests(self, views: Sequence[RunView]) -> dict[str, RunDigest]:
        """What statistics know of each of these runs, by id, of one that goes on as it stands; of one that was never
        begun, or of which no record is left, there is nothing.
        """
        ended = [view.row.run_id for view in views if view.ended]
        found = {run.run_id: run.digest for run in counted_runs(self._engine, run_ids=ended)[0]}
        going = ((view.row.run_id, digest_of(view.snapshot)) for view in views if not view.ended)
        return found | {run_id: digest for run_id, digest in going if digest is not None}

    @in_thread
    def usual_time(self, run_id: str, config: Config | None = None) -> str:
        """What runs of this one's team usually take, in words; empty where too few have ended, or none can be read.
        `config`: the run's, if the caller has it already.
        """
        with suppress(MassgenError):
            row = self._store.get(run_id)
            agents = (config or self._files.of(row).read_request().config).agents
            models = [agent.backend.model for agent in agents]
            return usual_time(counted_runs(self._engine, config=row.config, newest=NEWEST)[0], models)
        return ""

    @in_thread
    def usual_runs(self, source: str, config: Config) -> Usual | None:
        """What runs of this team, from the same source, usually come to; None where too few have ended, or none can be
        read.
        """
        models = [agent.backend.model for agent in config.agents]
        with suppress(MassgenError):
            return usual_runs(
                counted_runs(self._engine, config=source, newest=NEWEST)[0], models, classify_work(config)
            )
        return None

    @in_thread
    def mark(self, run_id: str, verdict: Verdict | None, *, agent: str | None = None, note: str = "") -> None:
        """Note that the answer of a run, or what one of its agents said, proved right or wrong; None: nothing any more.
        It is no event of the run, and stays, without the note, when the run's results are gone.

        Raises `MassgenError` unknown_run, not_finished, invalid_arguments, disk_full, store_unavailable.
        """
        row = self._watches.of(run_id).row()
        runs, _ = counted_runs(self._engine, run_ids=[row.run_id])
        check_mark(row, runs[0] if runs else None, agent, note)
        backends: list[BackendConfig] = []
        with suppress(MassgenError):  # it has expired
            backends = [one.backend for one in self._files.of(row).read_request().config.agents]
        kept = redactor_for(self.environ, backends).text(note)
        mark = None if verdict is None else Mark(verdict=verdict, note=kept, at=time.time())
        self._store.mark(row.run_id, agent or "", mark)

    @in_thread
    def proved_right(self) -> list[tuple[RunView, str, str]]:
        """Runs of which it is known what is right, each with whose answer that is (empty: its own) and what it says, as
        it is marked, or because its patch was applied and is not taken back. Raises `MassgenError` disk_full,
        store_unavailable.
        """
        found: list[tuple[RunView, str, str]] = []
        for run in counted_runs(self._engine)[0]:
            marked = [agent for agent, mark in run.marks.items() if mark.verdict == "right"]
            with suppress(MassgenError):  # its files are gone
                if "" not in run.marks and applied_at(self._files_of(run.run_id).changes) is not None:
                    marked.append("")
                if not marked:
                    continue
                view = self._watches.of(run.run_id).look()
                answers = {one.info.id: one.answers[-1].content for one in view.snapshot.agents.values() if one.answers}
                answers[""] = view.snapshot.best_answer or ""
                found += [(view, agent, answers[agent]) for agent in sorted(marked)[:1] if answers.get(agent)]
        return found

    @in_thread
    def laid_out(self, view: RunView, place: Path) -> LaidOut | None:
        """See `runs.patches.earlier_changes`."""
        return laid_out(view, place)

    @in_thread
    def recent(
        self,
        *,
        state: RunStatus | None = None,
        session_id: str | None = None,
        since: float | None = None,
        before: int | None = None,
        limit: int,
        keep: Callable[[RunRow], bool] | None = None,
    ) -> list[RunView]:
        """Newest first; damaged and expired runs are there with what the store knows of them. `since`: seconds since
        the epoch; `before`: the number of the last row of the page before; `keep`: only rows for which it is true.
        Raises `MassgenError` invalid_arguments.
        """
        if session_id is not None:
            check_text("session_id", session_id)
        known = "running" if state == "input_required" else state  # the store does not tell these two apart
        views, last = list[RunView](), before
        at_once = limit if keep is None else max(limit, SEARCHED_AT_ONCE)
        while len(views) < limit and (
            found := self._store.recent(state=known, session_id=session_id, since=since, before=last, limit=at_once)
        ):
            seen = map(self._look_or_row, found if keep is None else filter(keep, found))
            wanted = (view for view in seen if known != "running" or view.state == state)
            views += islice(wanted, limit - len(views))
            last = found[-1].number
        return views

    @in_thread
    def interrupted_below(self, directory: Path) -> list[RunView]:
        """The runs below this directory whose process is gone and that can be continued, newest first."""
        views: list[RunView] = []
        for row in self._store.unfinished_below(directory):
            with suppress(MassgenError):  # its files are gone, or cannot be read
                views.append(self._watches.of(row.run_id).look())
        return [view for view in views if view.state == "interrupted" and not (view.damage or view.newer)]

    @in_thread
    def figures(self) -> list[StateFigures]:
        """How many runs there are in each state. Raises `MassgenError` store_unavailable."""
        return self._store.figures()

    @in_thread
    def limits_in_use(self) -> list[tuple[str, str, int, int, int]]:
        """See `Engine.limits_in_use`."""
        return self._engine.limits_in_use()

    @in_thread
    def audit(self, *, person: str | None = None, run_id: str | None = None, limit: int = 100) -> list[AuditEntry]:
        """Who did what, newest first. Raises `MassgenError` store_unavailable."""
        return self._store.audit(person=person, run_id=run_id, limit=limit)

    async def move_out(self, run_id: str, target: Path) -> MovedOut:
        """See `runs.moving.move_out`; a caller that is cancelled before the file is complete keeps the run here."""
        return await run_in_stoppable_thread(partial(move_out, self._engine, self._watches.of, run_id, target))

    @in_thread
    def move_in(
        self,
        file: Path,
        owner: str | None,
        accepts: Callable[[RunDemands], bool],
        *,
        back: bool = False,
        is_only_import: bool = False,
    ) -> MovedIn:
        """See `runs.moving.move_in`; a run that may go on here does so."""
        moved = move_in(
            self._engine,
            self._dispatch,
            self.environ,
            file,
            owner,
            back=back,
            is_only_import=is_only_import,
            accepts=accepts,
        )
        if moved.state not in TERMINAL_STATES:
            self._dispatch.care_for(self._watches.of(moved.run_id).look())
        return moved

    @in_thread
    def prune(self, *, dry_run: bool = False, older_than: float | None = None) -> Pruned:
        """Delete workspaces and results that are older than the limits (see `retention.prune`)."""
        self._engine.home.ensure()
        return prune(self._engine, dry_run=dry_run, older_than=older_than)

    @in_thread
    def prune_named(self, run_ids: Sequence[str], *, dry_run: bool = False) -> Pruned:
        """Delete everything of these runs (see `retention.prune_named`). Raises `MassgenError` unknown_run."""
        rows = [self._watches.of(run_id).row() for run_id in run_ids]
        return prune_named(self._engine, rows, dry_run=dry_run)

    # -- plumbing -------------------------------------------------------------------------------------------------

    def _files_of(self, run_id: str) -> RunFiles:
        return self._files.of(self._store.get(run_id))

    def _look_or_row(self, row: RunRow) -> RunView:
        """What the store knows is enough for a run that has ended, or whose record cannot be read."""
        if row.state not in TERMINAL_STATES:
            with suppress(MassgenError):
                return self._watches.of(row.run_id).look()
        snapshot = RunState(run_id=row.run_id, question=row.question, store_state=row.state)
        return RunView(row, snapshot, self._files.of(row))


def _noted(page: "RunPage", view: RunView) -> "RunPage":
    """With what is wrong with the run's record, or why the run does not go on, unless its story says that."""
    trouble = view.damage or (view.held_up_by if not view.row.moved else None)
    return page if trouble is None else page.model_copy(update={"notes": (*page.notes, str(trouble))})
