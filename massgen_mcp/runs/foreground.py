"""A run that the process of a person or a program executes itself: in the run store like any other.

The process holds a lock in the run's directory while it works; when the lock is gone and the run has not ended, the run
is interrupted, and goes on as soon as somebody resumes it: in a runner, or in a process like the first one. Must not
know how a run is shown.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import anyio
import anyio.to_thread

from massgen_mcp.config.loader import require_keys
from massgen_mcp.errors import MassgenError, storage_fault
from massgen_mcp.events import LogRecord
from massgen_mcp.file_systems import refuse_network
from massgen_mcp.home import find_home
from massgen_mcp.request.run_request import RunRequest
from massgen_mcp.runs.credentials import identity
from massgen_mcp.runs.directory import RunDirectory, timestamp
from massgen_mcp.runs.engine import RunFiles, RunStore
from massgen_mcp.runs.engine.rows import NewRun, RunRow, new_run_id
from massgen_mcp.runs.execute import RunHandle, break_off, execute_run
from massgen_mcp.runs.local import local_engine
from massgen_mcp.runs.project import LOGS, own_place
from massgen_mcp.views.snapshot import RunSnapshot
from massgen_mcp.workspace.snapshot import remove_tree

CONTROL_INTERVAL = 0.5
"""Seconds between two looks at what is wanted of the run."""


@dataclass(frozen=True, slots=True)
class ForegroundRun:
    """Made by `run_here` or `continue_here`; `execute` it once. `note` says why it is in no list although it should
    be.
    """

    run_id: str
    directory: RunFiles
    note: str
    _environ: Mapping[str, str]
    _store: RunStore | None
    _temporary: Path | None = None

    def forget(self) -> None:
        """Remove the files that nobody keeps, for a process that leaves in a hurry."""
        if self._temporary is not None:
            remove_tree(self._temporary)

    async def execute(
        self,
        *,
        on_start: Callable[[RunHandle], None] = lambda _: None,
        on_record: Callable[[LogRecord], None] = lambda _: None,
    ) -> RunSnapshot:
        """Take the run to its end, as `execute_run` does. Raises `MassgenError` as that does.

        When the caller is cancelled, the run is cancelled first, and ends as such: nothing goes on behind it.
        """
        handles: list[RunHandle] = []
        outcome: list[RunSnapshot | Exception] = []
        ended = anyio.Event()
        abandoned = False

        def started(handle: RunHandle) -> None:
            handles.append(handle)
            on_start(handle)
            if abandoned:
                handle.cancel()

        async def work() -> None:
            with anyio.CancelScope(shield=True):
                try:
                    outcome.append(await self._to_its_end(started, on_record))
                except Exception as error:  # noqa: BLE001 - carried out of the task group as it is
                    outcome.append(error)
            ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            tasks.start_soon(self._heed_controls, handles)
            try:
                await ended.wait()
            except anyio.get_cancelled_exc_class():
                abandoned = True
                for handle in handles:
                    handle.cancel()
                raise
            tasks.cancel_scope.cancel()
        (came,) = outcome
        if isinstance(came, Exception):
            raise came
        return came

    async def _to_its_end(
        self, on_start: Callable[[RunHandle], None], on_record: Callable[[LogRecord], None]
    ) -> RunSnapshot:
        try:
            snapshot = await execute_run(
                self.directory, self.run_id, environ=self._environ, on_start=on_start, on_record=on_record
            )
        except Exception as failure:
            if storage_fault(failure) is None:
                told = f"{type(failure).__name__}: {failure}"
                self._note_end(await break_off(self.directory, "internal", told, self._environ))
            raise
        self._note_end(snapshot)
        return snapshot

    def _note_end(self, snapshot: RunSnapshot) -> None:
        """If the store cannot be told now, whoever looks at the run next tells it."""
        if self._store is not None:
            with suppress(MassgenError):
                self._store.end(self.run_id, snapshot)

    async def _heed_controls(self, handles: list[RunHandle]) -> None:
        store = self._store
        while store is not None:
            await anyio.sleep(CONTROL_INTERVAL)
            if handles:
                with suppress(MassgenError):  # a store that is full or locked away is asked again
                    controls = await anyio.to_thread.run_sync(store.controls, [self.run_id])
                    if done := await handles[0].heed(controls):
                        await anyio.to_thread.run_sync(store.done, done)


@contextmanager
def run_here(request: RunRequest) -> Generator[ForegroundRun]:
    """A new run in a directory of its own, to be executed by this process while the context lasts. Where the store
    cannot be used the run works all the same, and its `note` says that it is in no list.

    Raises `MassgenError` unsafe_path, disk_full, store_unavailable.
    """
    run_id, store, note = new_run_id(), None, ""
    with ExitStack() as cleanup:
        project = request.project or cleanup.enter_context(temporary_project())
        directory = _new_directory(own_place(project, LOGS), request)
        if request.listed:
            try:
                store = _enter(directory, run_id, request, cleanup)
            except MassgenError as error:
                note = f"this run is in no list: {error}"
        temporary = None if request.listed else project
        yield ForegroundRun(run_id, directory, note, request.team.environ, store, temporary)


@contextmanager
def continue_here(row: RunRow, *, environ: Mapping[str, str]) -> Generator[ForegroundRun]:
    """An interrupted run of the store, taken over by this process with the keys of `environ`: it goes on in its own
    directory, from where its journal ends.

    Raises `MassgenError` missing_key, key_refused, config_invalid, run_damaged, journal_newer, disk_full,
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
        yield ForegroundRun(row.run_id, directory, "", environ, engine.store)


@contextmanager
def temporary_project() -> Generator[Path]:
    """A directory for runs that leave nothing behind."""
    path = Path(mkdtemp(prefix="massgen-"))
    try:
        yield path
    finally:
        remove_tree(path)


def _new_directory(logs: Path, request: RunRequest) -> RunDirectory:
    """A directory of this run alone, however many are started in the same moment."""
    while True:
        try:
            path = logs / f"log_{timestamp()}"
            return RunDirectory.create(path, request.question, request.config, request.history, request.redactor)
        except FileExistsError:
            continue


def _enter(directory: RunFiles, run_id: str, request: RunRequest, cleanup: ExitStack) -> RunStore:
    """Lock the directory first, then enter the run: who sees it sees whether it is alive."""
    refuse_network(directory.path)
    environ = request.team.environ
    home = find_home(environ).ensure()
    engine = local_engine(home)
    cleanup.enter_context(engine.liveness.hold_foreground(directory))
    cleanup.callback(engine.close)
    fingerprint = identity(request.config, environ, home)
    run = NewRun(run_id, request.question, request.source, fingerprint, request_hash="")
    engine.store.add_foreground(run, directory.path)
    return engine.store
