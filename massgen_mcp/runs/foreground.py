"""A run that the process of a person or a program executes itself: in the run store like any other.

The process holds a lock in the run's directory while it works; when the lock is gone and the run has not ended, the run
is interrupted, and goes on as soon as somebody resumes it: in a runner, or in a process like the first one. Must not
know how a run is shown.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import anyio
import anyio.to_thread

from massgen_mcp.config.loader import require_keys
from massgen_mcp.errors import MassgenError, storage_fault
from massgen_mcp.events import LogRecord
from massgen_mcp.file_systems import refuse_network
from massgen_mcp.home import find_home
from massgen_mcp.request.run_request import RunRequest
from massgen_mcp.runs.credentials import identity
from massgen_mcp.runs.engine import RunFiles, RunStore
from massgen_mcp.runs.engine.rows import NewRun, RunRow, new_run_id
from massgen_mcp.runs.execute import RunHandle, break_off, execute_run
from massgen_mcp.runs.local import local_engine
from massgen_mcp.views.snapshot import RunSnapshot

CONTROL_INTERVAL = 0.5
"""Seconds between two looks at what is wanted of the run."""


@dataclass(frozen=True, slots=True)
class ForegroundRun:
    """Made by `listed`, `unlisted` or `continued`; `execute` it once. `note` says why it is in no list although it
    should be.
    """

    run_id: str
    directory: RunFiles
    note: str
    _environ: Mapping[str, str]
    _store: RunStore | None

    async def execute(
        self,
        *,
        on_start: Callable[[RunHandle], None] = lambda _: None,
        on_record: Callable[[LogRecord], None] = lambda _: None,
    ) -> RunSnapshot:
        """Take the run to its end, as `execute_run` does. Raises `MassgenError` as that does."""
        handles: list[RunHandle] = []

        def started(handle: RunHandle) -> None:
            handles.append(handle)
            on_start(handle)

        failure: Exception | None = None
        snapshot = RunSnapshot()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._heed_controls, handles)
            try:
                snapshot = await execute_run(
                    self.directory, self.run_id, environ=self._environ, on_start=started, on_record=on_record
                )
            except Exception as error:  # noqa: BLE001 - raised below, not wrapped in the task group's own
                failure = error
            tasks.cancel_scope.cancel()
        if failure is None:
            self._note_end(snapshot)
            return snapshot
        if storage_fault(failure) is None:
            told = f"{type(failure).__name__}: {failure}"
            self._note_end(await break_off(self.directory, "internal", told, self._environ))
        raise failure

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


def unlisted(directory: RunFiles, environ: Mapping[str, str]) -> ForegroundRun:
    """A run that nobody shall find again."""
    return ForegroundRun(new_run_id(), directory, "", environ, None)


@contextmanager
def listed(directory: RunFiles, request: RunRequest) -> Generator[ForegroundRun]:
    """A new run in the store, in the directory that was made for it. Where the store cannot be used the run works all
    the same, and its `note` says that it is in no list.
    """
    run_id, store, note = new_run_id(), None, ""
    with ExitStack() as cleanup:
        try:
            store = _enter(directory, run_id, request, cleanup)
        except MassgenError as error:
            note = f"this run is in no list: {error}"
        yield ForegroundRun(run_id, directory, note, request.team.environ, store)


@contextmanager
def continued(row: RunRow, *, environ: Mapping[str, str]) -> Generator[ForegroundRun]:
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
