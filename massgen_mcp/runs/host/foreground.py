"""A run that the process of a person or a program executes itself: in the run store like any other.

The process holds a lock in the run's directory while it works; when the lock is gone and the run has not ended, the run
is interrupted, and goes on as soon as somebody resumes it: in a runner, or in a process like the first one. What this
process does with the run is in `foreground_run`.
"""

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

from massgen_mcp.config.diagnostics import show_name
from massgen_mcp.config.loader import require_keys
from massgen_mcp.errors import MassgenError
from massgen_mcp.file_systems import refuse_network
from massgen_mcp.home import enclosing_run, find_home
from massgen_mcp.request.build import RunRequest
from massgen_mcp.runs.engine import FrozenRequest, NewRun, RunFiles, RunRow, SessionMoved, new_run_id
from massgen_mcp.runs.engine.files import timestamp
from massgen_mcp.runs.engine.queue import RunQueue
from massgen_mcp.runs.host.foreground_run import ForegroundRun
from massgen_mcp.runs.host.run_host import RunExecutor, StoredRuns
from massgen_mcp.runs.preparation import freeze, prepare
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.sessions.project import LOGS, SESSIONS, keep_out_of_git, own_place
from massgen_mcp.runs.sessions.session_records import SessionRecords
from massgen_mcp.runs.sessions.turns import SessionTurns, start_note
from massgen_mcp.runs.starting import ask_to_admit
from massgen_mcp.runs.store.credentials import identity
from massgen_mcp.runs.store.opening import local_engine
from massgen_mcp.workspace.snapshot import remove_tree


@contextmanager
def run_here(request: RunRequest) -> Generator[ForegroundRun]:
    """A new run in a directory of its own, to be executed by this process while the context lasts. Where the store
    cannot be used the run works all the same, and its `note` says that it is in no list.

    As a turn of a session it knows the turns before it, and its agents begin with the files that those left. In a
    process that works inside a run it is nested in that one, and begins when that one admits it.

    Raises `MassgenError` unsafe_path, session_busy, nesting_refused, config_invalid, disk_full, store_unavailable, and
    as `find_earlier_changes`.
    """
    if not request.given.listed and (outer := enclosing_run(request.team.environ)):
        raise MassgenError(
            "nesting_refused",
            f"{outer}'s nested runs must be in the list of runs; remove --no-logs, or set enable_logging=True",
        )
    with ExitStack() as cleanup:
        project = request.given.project or cleanup.enter_context(temporary_project())
        _require_utf8(project)
        run, note = None, ""
        if request.given.listed:
            try:
                run = _run_in_store(request, project, cleanup)
            except MassgenError as error:
                kept = request.given.changes_of is not None or enclosing_run(request.team.environ)
                if error.code == "session_busy" or kept:
                    raise
                note = f"this run isn't in the list of runs: {error}"
        run = run or _unlisted(request, project, note)
        yield cleanup.enter_context(run.reported())


def _require_utf8(project: Path) -> None:
    """Records, store and replies are UTF-8, and all of them name the run's directory."""
    try:
        str(project).encode()
    except UnicodeEncodeError:
        raise MassgenError(
            "unsafe_path",
            f"{show_name(str(project))}: the path isn't valid UTF-8, so massgen can't record it; work in another "
            "directory, or pass --no-logs",
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
        if not held or not engine.store.queue.take_foreground(row.run_id, identity(config, environ, home)):
            raise MassgenError("invalid_action", f"another process has just taken over run {row.run_id}")
        project = directory.path.parents[2]
        records = SessionRecords(own_place(project, SESSIONS) / row.session_id) if row.session_id else None
        news = engine.liveness.foreground_news(directory, row.run_id, environ)
        executor = RunExecutor(environ, StoredRuns(engine, RunService(engine, environ), news))
        run = ForegroundRun(row.run_id, directory, environ, executor, session=records)
        yield cleanup.enter_context(run.reported())


@contextmanager
def temporary_project() -> Generator[Path]:
    """A directory for runs that leave nothing behind."""
    path = Path(mkdtemp(prefix="massgen-"))
    try:
        yield path
    finally:
        remove_tree(path)


def _run_in_store(request: RunRequest, project: Path, cleanup: ExitStack) -> ForegroundRun:
    """Its directory is locked first, then it is entered: who sees it sees whether it is alive."""
    environ = request.team.environ
    home = find_home(environ).ensure()
    engine = local_engine(home)
    cleanup.callback(engine.close)
    service = RunService(engine, environ)
    sessions = service.access.sessions
    prepared = prepare(service.access, request)
    run_id, outer, begins_with = prepared.row.run_id, prepared.outer, prepared.stored.begins_with
    while True:
        with ExitStack() as attempt:
            records = _records(request, project, sessions)
            if records and request.given.begins_session:
                attempt.callback(records.path.rmdir)
            session_id = records.session_id if records else None
            history, over = sessions.history(session_id)
            row, stored = prepared.take_turns(history, over)
            row = replace(row, session_id=session_id)
            directory = _new_directory(request, project, records, stored)
            attempt.callback(remove_tree, directory.path)
            refuse_network(directory.path)
            held = cleanup.enter_context(ExitStack())
            held.enter_context(engine.liveness.hold_foreground(directory))
            if _enter_run(engine.store.queue, row, directory, begins_session=request.given.begins_session):
                attempt.pop_all()
                news = engine.liveness.foreground_news(directory, run_id, environ)
                executor = RunExecutor(environ, StoredRuns(engine, service, news))
                if outer is not None:
                    ask_to_admit(engine, environ, outer, run_id)
                begins = start_note(begins_with).strip()
                return ForegroundRun(
                    run_id, directory, environ, executor, session=records, outer=row.parent, begins_with=begins
                )
            held.close()


def _enter_run(queue: RunQueue, run: NewRun, directory: RunFiles, *, begins_session: bool) -> bool:
    """False if its session has moved meanwhile, or is another one that began in the same moment somewhere else."""
    try:
        queue.add_foreground(run, directory.path)
    except SessionMoved:
        return False
    except MassgenError as error:
        if begins_session and error.code == "session_busy":
            return False
        raise
    return True


def _unlisted(request: RunRequest, project: Path, note: str) -> ForegroundRun:
    if request.given.changes_of is not None:
        raise MassgenError("invalid_arguments", "changes_of needs a session with saved runs")
    records = _records(request, project)
    directory = _new_directory(request, project, records, freeze(request))
    temporary = None if request.given.listed else project
    environ = request.team.environ
    return ForegroundRun(
        new_run_id(), directory, environ, RunExecutor(environ, None), note, records, temporary=temporary
    )


def _records(request: RunRequest, project: Path, sessions: SessionTurns | None = None) -> SessionRecords | None:
    """Those of the run's session; a new one has an id that nobody uses, here and in the store."""
    if not request.given.begins_session:
        return (
            SessionRecords(own_place(project, SESSIONS) / request.given.session_id)
            if request.given.session_id
            else None
        )
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
    frozen: FrozenRequest,
) -> RunFiles:
    """A directory of this run alone, however many are started in the same moment. `frozen` has what the store knows of
    the session; of one that it does not know there may be records, as of another machine.
    """
    frozen = replace(frozen, history=request.given.history or frozen.history or (session.history if session else ()))
    logs = own_place(project, LOGS)
    while True:
        try:
            path = logs / f"log_{timestamp()}"
            run = RunFiles.create(path, frozen, request.redactor)
        except FileExistsError:
            continue
        keep_out_of_git(project)
        if session and request.config.orchestrator.enable_filesystem:
            session.lay_out_files(run, len(request.config.agents))
        return run
