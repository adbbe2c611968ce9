"""A run that the process of a person or a program executes itself: in the run store like any other.

The process holds a lock in the run's directory while it works; when the lock is gone and the run has not ended, the run
is interrupted, and goes on as soon as somebody resumes it: in a runner, or in a process like the first one. Must not
know how a run is shown.
"""

import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import anyio
import anyio.to_thread

from massgen_mcp.config.diagnostics import show_name
from massgen_mcp.config.loader import require_keys
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError, storage_fault
from massgen_mcp.events.record import LogRecord
from massgen_mcp.file_systems import refuse_network
from massgen_mcp.home import enclosing_run, find_home
from massgen_mcp.orchestration.nested_runs import NestedHost
from massgen_mcp.request.earlier_turn import EarlierTurn
from massgen_mcp.request.run_request import RunRequest
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.applying import Application, RunPatch, apply_patch
from massgen_mcp.runs.beats import next_beat
from massgen_mcp.runs.credentials import identity
from massgen_mcp.runs.directory import RunDirectory, timestamp
from massgen_mcp.runs.engine import Engine, NewsHost, RunFiles, RunStore
from massgen_mcp.runs.engine.rows import Nesting, NewRun, Request, RunRow, SessionMoved, new_run_id
from massgen_mcp.runs.execute import RunHandle, break_off, execute_run
from massgen_mcp.runs.local import local_engine
from massgen_mcp.runs.nested import NestedRunHost
from massgen_mcp.runs.project import LOGS, SESSIONS, own_place
from massgen_mcp.runs.run_view import RunView
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.session_records import SessionRecords
from massgen_mcp.runs.sessions import SessionTurns
from massgen_mcp.runs.within import ask_to_admit, config_within, enclosing
from massgen_mcp.workspace.snapshot import remove_tree

logger = logging.getLogger("massgen_mcp.run")

CONTROL_INTERVAL = 5.0
"""Seconds after which the run's open controls are read, even if nobody said that there are any."""
ADMISSION_INTERVAL = 0.1
"""Seconds between two looks whether a run that is started inside another one may begin."""
STATUS_HEARTBEAT = 2.0
"""Every so many seconds `status.json` is written even if nothing happened."""


@dataclass(frozen=True, slots=True)
class _Listing:
    """Where a run that can be found again is kept, and who is told of it."""

    store: RunStore
    sessions: SessionTurns
    news: NewsHost
    nested_host: Callable[[Request], NestedHost]
    files_of: Callable[[str], RunFiles]
    """Of any run, by its id."""
    outer: RunView | None = None
    """The run inside which this one is started, and which has to admit it."""


@dataclass(frozen=True, slots=True)
class ForegroundRun:
    """Made by `run_here` or `continue_here`; `execute` it once. `note` says why it is in no list although it should
    be. `session`: what is kept of the session that it is a turn of; a turn is written down there if there are records.
    """

    run_id: str
    directory: RunFiles
    environ: Mapping[str, str]
    note: str = ""
    session: SessionRecords | None = None
    _listing: _Listing | None = None
    _temporary: Path | None = None
    _snapshots: list[RunState] = field(default_factory=list[RunState])
    """How the run ended, once it has."""

    @property
    def listed(self) -> bool:
        return self._listing is not None

    def view(self, run: RunState) -> RunView:
        """The run that has ended, as whoever looks from outside sees it. Raises `MassgenError` store_unavailable."""
        if self._listing is not None:
            return RunView(self._listing.store.get(self.run_id), run, self.directory)
        row = RunRow(
            number=0,
            run_id=self.run_id,
            state=run.state,
            question=run.question,
            config="",
            fingerprint="",
            runner=None,
            idempotency_key=None,
            request_hash="",
            created=run.started_at or 0.0,
            started=run.started_at,
            ended=run.ended_at,
            session_id=None,
            outcome=run.outcome,
            winner=run.author,
            events=run.seq,
            kept="all",
            resumes=run.resumed,
            directory=str(self.directory.path),
            foreground=True,
        )
        return RunView(row, run, self.directory)

    def forget(self) -> None:
        """Remove the files that nobody keeps, for a process that leaves in a hurry."""
        if self._temporary is not None:
            remove_tree(self._temporary)

    def _report(self) -> None:
        """Write the report, when whoever waited for the run has its answer. Without one the run is none the worse."""
        from massgen_mcp.runs.reporting import write_report  # nothing starts with it

        try:
            for snapshot in self._snapshots:
                write_report(self.directory, snapshot, self._listing and self._listing.files_of, self.environ)
        except Exception as error:  # noqa: BLE001 - what only looks at a run must not end it
            logger.warning("the run has no report: %s", error)

    @contextmanager
    def reported(self) -> Generator["ForegroundRun"]:
        """The run, and after what is done with it its report, where its files are kept."""
        try:
            yield self
        finally:
            if self._temporary is None:
                self._report()

    async def execute(
        self,
        *,
        on_start: Callable[[RunHandle], None] = lambda _: None,
        on_record: Callable[[LogRecord], None] = lambda _: None,
    ) -> RunState:
        """Take the run to its end, as `execute_run` does. Raises `MassgenError` as that does.

        When the caller is cancelled, the run is cancelled first, and ends as such: nothing goes on behind it.
        """
        handles: list[RunHandle] = []
        outcome: list[RunState | Exception] = []
        begun, ended = anyio.Event(), anyio.Event()
        abandoned = False

        def started(handle: RunHandle) -> None:
            handles.append(handle)
            on_start(handle)
            begun.set()
            if abandoned:
                handle.do("cancel")

        async def work() -> None:
            with anyio.CancelScope(shield=True):
                try:
                    await self._admitted()
                    outcome.append(await self._to_its_end(started, on_record))
                except Exception as error:  # noqa: BLE001 - carried out of the task group as it is
                    outcome.append(error)
            ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            if self._listing is not None:
                tasks.start_soon(self._listing.news.serve)
                tasks.start_soon(self._heed_controls, begun, handles, self._listing)
            try:
                await ended.wait()
            except anyio.get_cancelled_exc_class():
                abandoned = True
                for handle in handles:
                    handle.do("cancel")
                raise
            tasks.cancel_scope.cancel()
        (came,) = outcome
        if isinstance(came, Exception):
            raise came
        return came

    async def apply(self, ended: RunState, *, dry_run: bool = False) -> Application | None:
        """Bring what a completed run changed into the directories that it was given with `write`, or nothing of it.
        None: it changed nothing that may be applied. Raises `MassgenError` as `apply_patch`.
        """
        made = await self._patch(ended)
        if made is None:
            return None
        home = find_home(self.environ)
        return await anyio.to_thread.run_sync(partial(apply_patch, home, made, dry_run=dry_run))

    async def difference(self, ended: RunState, planned: Application, most_bytes: int) -> tuple[bytes, int]:
        """What `apply` would change, as `RunPatch.difference` tells it. Raises `MassgenError` as that."""
        made = await self._patch(ended)
        if made is None:
            return b"", 0
        return await anyio.to_thread.run_sync(made.difference, planned, most_bytes)

    async def _patch(self, ended: RunState) -> RunPatch | None:
        """What may be applied."""
        if ended.state != "completed":
            return None
        made = await anyio.to_thread.run_sync(RunPatch.of, self.run_id, self.directory, ended)
        return made if made is not None and made.applicable else None

    async def _admitted(self) -> None:
        """Wait until the run around this one has set its budget aside, or this one has ended without."""
        if self._listing is None or self._listing.outer is None:
            return
        store, outer = self._listing.store, self._listing.outer.row.run_id
        while True:
            row, around = await anyio.to_thread.run_sync(lambda: (store.get(self.run_id), store.get(outer)))
            if row.admitted or row.state in TERMINAL_STATES:
                return
            if around.state in TERMINAL_STATES:
                told = f"run {outer}, inside which it was started, is {around.state}"
                self._note_end(await break_off(self.directory, "budget", told, self.environ))
                return
            await anyio.sleep(ADMISSION_INTERVAL)

    async def _to_its_end(
        self, on_start: Callable[[RunHandle], None], on_record: Callable[[LogRecord], None]
    ) -> RunState:
        try:
            snapshot = await execute_run(
                self.directory,
                self.run_id,
                environ=self.environ,
                on_start=on_start,
                on_record=on_record,
                on_news=self._tell,
                nested_host=self._listing and self._listing.nested_host,
                heartbeat=STATUS_HEARTBEAT,
            )
        except Exception as failure:
            if storage_fault(failure) is None:
                told = f"{type(failure).__name__}: {failure}"
                self._note_end(await break_off(self.directory, "internal", told, self.environ))
            raise
        self._note_end(snapshot)
        return snapshot

    def _note_end(self, snapshot: RunState) -> None:
        """If the store cannot be told now, or the turn not be written down, whoever looks next does it."""
        self._snapshots.append(snapshot)
        with suppress(MassgenError):
            if self._listing is not None:
                self._listing.store.end(self.run_id, snapshot)
        if self.session is not None and self.session.exist:
            with suppress(MassgenError):
                if self._listing is not None:
                    sessions = self._listing.sessions
                    self.session.complete(sessions.runs(self.session.session_id), sessions.look)
                else:
                    self.session.keep(self.directory, snapshot)

    def _tell(self, milestone: bool) -> None:
        if self._listing is not None:
            self._listing.news.tell(self.run_id, milestone=milestone)

    async def _heed_controls(self, begun: anyio.Event, handles: list[RunHandle], listing: _Listing) -> None:
        await begun.wait()
        while True:
            with suppress(MassgenError):  # a store that is full or locked away is asked again
                controls = await anyio.to_thread.run_sync(listing.store.controls, [self.run_id])
                if done := await handles[0].heed(controls):
                    await anyio.to_thread.run_sync(listing.store.done, done)
                    listing.news.tell(self.run_id)
            with anyio.CancelScope(deadline=next_beat(CONTROL_INTERVAL)):
                await listing.news.woken()


@contextmanager
def run_here(request: RunRequest) -> Generator[ForegroundRun]:
    """A new run in a directory of its own, to be executed by this process while the context lasts. Where the store
    cannot be used the run works all the same, and its `note` says that it is in no list.

    As a turn of a session it knows the turns before it, and its agents begin with the files that those left. In a
    process that works inside a run it is nested in that one, and begins when that one admits it.

    Raises `MassgenError` unsafe_path, session_busy, nesting_refused, config_invalid, disk_full, store_unavailable.
    """
    if not request.listed and (outer := enclosing_run(request.team.environ)):
        raise MassgenError("nesting_refused", f"inside run {outer} only runs are started that are in the list of runs")
    with ExitStack() as cleanup:
        project = request.project or cleanup.enter_context(temporary_project())
        _require_utf8(project)
        run, note = None, ""
        if request.listed:
            try:
                run = _listed(request, project, cleanup)
            except MassgenError as error:
                if error.code == "session_busy" or enclosing_run(request.team.environ):
                    raise
                note = f"this run is in no list: {error}"
        run = run or _unlisted(request, project, note)
        yield cleanup.enter_context(run.reported())


def _require_utf8(project: Path) -> None:
    """Records, store and replies are UTF-8, and all of them name the run's directory."""
    try:
        str(project).encode()
    except UnicodeEncodeError:
        raise MassgenError(
            "unsafe_path",
            f"{show_name(str(project))}: the path is not UTF-8, so no record could name it; work in another directory, "
            "or keep no files (--no-logs)",
        ) from None


@contextmanager
def continue_here(row: RunRow, *, environ: Mapping[str, str]) -> Generator[ForegroundRun]:
    """An interrupted run of the store, taken over by this process with the keys of `environ`: it goes on in its own
    directory, from where its journal ends.

    Raises `MassgenError` missing_key, key_refused, config_invalid, run_damaged, journal_newer, session_busy, disk_full,
    store_unavailable, and invalid_action if another process was faster.
    """
    home = find_home(environ).ensure()
    engine = local_engine(home)
    directory = engine.files.of(row)
    refuse_network(directory.path)
    config = directory.read_request().config
    require_keys(config, environ)
    with ExitStack() as cleanup:
        cleanup.callback(engine.close)
        held = cleanup.enter_context(engine.liveness.hold_foreground(directory))
        if not held or not engine.store.take_foreground(row.run_id, identity(config, environ, home)):
            raise MassgenError("invalid_action", f"another process has taken over run {row.run_id} just now")
        project = directory.path.parents[2]
        records = SessionRecords(own_place(project, SESSIONS) / row.session_id) if row.session_id else None
        news = engine.liveness.foreground_news(directory, row.run_id, environ)
        listing = _listing(engine, RunService(engine, environ), environ, row.run_id, news)
        run = ForegroundRun(row.run_id, directory, environ, session=records, _listing=listing)
        yield cleanup.enter_context(run.reported())


@contextmanager
def temporary_project() -> Generator[Path]:
    """A directory for runs that leave nothing behind."""
    path = Path(mkdtemp(prefix="massgen-"))
    try:
        yield path
    finally:
        remove_tree(path)


def _listed(request: RunRequest, project: Path, cleanup: ExitStack) -> ForegroundRun:
    """Its directory is locked first, then it is entered: who sees it sees whether it is alive."""
    environ = request.team.environ
    home = find_home(environ).ensure()
    engine = local_engine(home)
    cleanup.callback(engine.close)
    service = RunService(engine, environ)
    sessions = service.sessions
    outer = enclosing(engine, environ)
    config, nesting = (request.config, None) if outer is None else config_within(outer, request.config, environ)
    fingerprint, run_id = identity(config, environ, home), new_run_id()
    while True:
        with ExitStack() as attempt:
            records = _records(request, project, sessions)
            if records and request.begins_session:
                attempt.callback(records.path.rmdir)
            session_id = records.session_id if records else None
            history, over = sessions.told(session_id)
            directory = _new_directory(request, project, records, history.turns, config, nesting)
            attempt.callback(remove_tree, directory.path)
            refuse_network(directory.path)
            held = cleanup.enter_context(ExitStack())
            held.enter_context(engine.liveness.hold_foreground(directory))
            run = NewRun(run_id, request.question, request.source, fingerprint, "", None, session_id, over)
            if outer is not None:
                run = replace(run, parent=outer.row.run_id, admitted=False)
            if _entered(engine.store, run, directory, begins_session=request.begins_session):
                attempt.pop_all()
                news = engine.liveness.foreground_news(directory, run_id, environ)
                listing = replace(_listing(engine, service, environ, run_id, news), outer=outer)
                if outer is not None:
                    ask_to_admit(engine, environ, outer, run_id)
                return ForegroundRun(run_id, directory, environ, session=records, _listing=listing)
            held.close()


def _listing(engine: Engine, service: RunService, environ: Mapping[str, str], run_id: str, news: NewsHost) -> _Listing:
    def nested_host(request: Request) -> NestedHost:
        return NestedRunHost(engine, service, environ, run_id, request)

    def files_of(run_id: str) -> RunFiles:
        return engine.files.of(engine.store.get(run_id))

    return _Listing(engine.store, service.sessions, news, nested_host, files_of)


def _entered(store: RunStore, run: NewRun, directory: RunDirectory, *, begins_session: bool) -> bool:
    """False if its session has moved meanwhile, or is another one that began in the same moment somewhere else."""
    try:
        store.add_foreground(run, directory.path)
    except SessionMoved:
        return False
    except MassgenError as error:
        if begins_session and error.code == "session_busy":
            return False
        raise
    return True


def _unlisted(request: RunRequest, project: Path, note: str) -> ForegroundRun:
    records = _records(request, project)
    directory = _new_directory(request, project, records, (), request.config)
    temporary = None if request.listed else project
    return ForegroundRun(new_run_id(), directory, request.team.environ, note, records, _temporary=temporary)


def _records(request: RunRequest, project: Path, sessions: SessionTurns | None = None) -> SessionRecords | None:
    """Those of the run's session; a new one has an id that nobody uses, here and in the store."""
    if not request.begins_session:
        return SessionRecords(own_place(project, SESSIONS) / request.session_id) if request.session_id else None
    taken: list[SessionRecords] = []
    while True:
        records = SessionRecords.create(own_place(project, SESSIONS))
        if sessions is None or not sessions.runs(records.session_id):
            break
        taken.append(records)
    for one in taken:
        one.path.rmdir()
    return records


def _new_directory(
    request: RunRequest,
    project: Path,
    session: SessionRecords | None,
    told: tuple[EarlierTurn, ...],
    config: Config,
    nesting: Nesting | None = None,
) -> RunDirectory:
    """A directory of this run alone, however many are started in the same moment. `told`: what the store knows of the
    session; of one that it does not know there may be records, as of another machine. `config`: what is executed.
    """
    history = request.history or told or (session.history if session else ())
    logs = own_place(project, LOGS)
    while True:
        try:
            path = logs / f"log_{timestamp()}"
            run = RunDirectory.create(path, request.question, config, history, request.redactor, nesting)
        except FileExistsError:
            continue
        if session and request.config.orchestrator.enable_filesystem:
            session.lay_out_files(run, len(request.config.agents))
        return run
