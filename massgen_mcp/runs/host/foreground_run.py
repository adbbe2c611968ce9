"""A run that the process of a person or a program executes itself, to its end and to what is done with it after that.

While it works it heeds the run's controls, as a runner does. Must not know how a run is shown.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from massgen_mcp.errors import JournalNewer, MassgenError
from massgen_mcp.events.record import LogRecord
from massgen_mcp.home import find_home
from massgen_mcp.money.estimate import Usual
from massgen_mcp.request.build import RunRequest
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine import NewsHost, RunFiles, RunRow
from massgen_mcp.runs.host.execute import RunHandle, abort_run
from massgen_mcp.runs.host.publishing import next_beat
from massgen_mcp.runs.host.run_host import ExecutedRun, RunExecutor, RunHost
from massgen_mcp.runs.patches.application import Application
from massgen_mcp.runs.patches.applying import RunPatch, apply_patch, with_checks
from massgen_mcp.runs.sessions.session_records import SessionRecords
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.runs.view.status_file import note_application
from massgen_mcp.workspace.snapshot import remove_tree

CONTROL_INTERVAL = 5.0
"""Seconds after which the run's open controls are read, even if nobody said that there are any."""
ADMISSION_INTERVAL = 0.1
"""Seconds between two looks whether a run that is started inside another one may begin."""
STATUS_HEARTBEAT = 2.0
"""Every so many seconds `status.json` is written even if nothing happened."""


@dataclass(frozen=True, slots=True)
class ForegroundRun:
    """Made by `run_here` or `continue_here`; `execute` it once. `note` says why it is in no list although it should
    be. `session`: what is kept of the session that it is a turn of; a turn is written down there if there are records.
    """

    run_id: str
    directory: RunFiles
    environ: Mapping[str, str]
    executor: RunExecutor
    note: str = ""
    session: SessionRecords | None = None
    outer: str | None = None
    """The run inside which this one is started, and which has to admit it."""
    temporary: Path | None = None
    """The directory that holds its files, where nobody keeps them."""
    begins_with: str = ""
    """What agents go on with beyond what lies in the caller's directories, in words."""
    report_faults: list[str] = field(default_factory=list[str])
    """The reasons for which `report.html` could not be written."""
    _snapshots: list[RunState] = field(default_factory=list[RunState])
    """How the run ended, once it has."""

    @property
    def listed(self) -> bool:
        return self.executor.stored is not None

    async def usual_time(self) -> str:
        """See `RunOutcomes.describe_usual_time`."""
        return (
            await self.executor.stored.service.outcomes.describe_usual_time(self.run_id)
            if self.executor.stored is not None
            else ""
        )

    async def usual_runs(self, request: RunRequest) -> Usual | None:
        """See `RunOutcomes.find_usual_runs`."""
        if self.executor.stored is None:
            return None
        return await self.executor.stored.service.outcomes.find_usual_runs(request.source, request.config)

    def view(self, run: RunState) -> RunView:
        """The run that has ended, as whoever looks from outside sees it. Raises `MassgenError` store_unavailable."""
        if self.executor.stored is not None:
            return RunView(self.executor.stored.engine.store.index.get(self.run_id), run, self.directory)
        row = RunRow(
            number=0,
            run_id=self.run_id,
            state=run.state,
            question=run.question,
            config="",
            fingerprint="",
            request_hash="",
            created=run.started_at or 0.0,
            started=run.started_at,
            ended=run.ended_at,
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
        if self.temporary is not None:
            remove_tree(self.temporary)

    @contextmanager
    def reported(self) -> Generator["ForegroundRun"]:
        """The run, and after what is done with it its report, where its files are kept."""
        try:
            yield self
        finally:
            for snapshot in self._snapshots if self.temporary is None else ():
                if fault := self.executor.write_report(self.run_id, self.directory, snapshot):
                    self.report_faults.append(fault)

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
        faults: list[Exception] = []
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
                    await self._wait_for_admission()
                    await self.executor.execute(_OwnProcess(self, started, on_record))
                except Exception as error:  # noqa: BLE001 - carried out of the task group as it is
                    faults.append(error)
            ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            if self.executor.stored is not None:
                tasks.start_soon(self.executor.stored.news.serve)
                tasks.start_soon(self._heed_controls, begun, self.executor.stored.news)
            try:
                await ended.wait()
            except anyio.get_cancelled_exc_class():
                abandoned = True
                for handle in handles:
                    handle.do("cancel")
                raise
            tasks.cancel_scope.cancel()
        if faults:
            raise faults[0]
        return self._snapshots[-1]

    async def apply(self, ended: RunState, *, dry_run: bool = False) -> Application | None:
        """Bring what a completed run changed into the directories that it was given with `write`, or nothing of it.
        None: it changed nothing that may be applied. Raises `MassgenError` as `apply_patch`.
        """
        made = await self._patch(ended)
        if made is None:
            return None
        home = find_home(self.environ)
        application = await anyio.to_thread.run_sync(partial(apply_patch, home, made, dry_run=dry_run))
        if application.state == "applied" and self.directory.report.exists():
            await anyio.to_thread.run_sync(self.executor.write_report, self.run_id, self.directory, ended)
        return with_checks(application, made, ended)

    async def note_application(self, ended: RunState, fields: Mapping[str, Any]) -> None:
        """Keep what became of the changes, in `status.json` and for who looks later."""
        await anyio.to_thread.run_sync(note_application, self.directory, ended, fields)

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
        made = await anyio.to_thread.run_sync(RunPatch.of, self.run_id, self.directory, ended.best_changes)
        return made if made is not None and made.patch.writable else None

    async def _wait_for_admission(self) -> None:
        """Wait until the run around this one has set its budget aside, or this one has ended without."""
        stored, outer = self.executor.stored, self.outer
        if stored is None or outer is None:
            return
        store = stored.engine.store
        while True:
            row, around = await anyio.to_thread.run_sync(lambda: (store.index.get(self.run_id), store.index.get(outer)))
            if row.admitted or row.state in TERMINAL_STATES:
                return
            if around.state in TERMINAL_STATES:
                message = f"its parent run {outer} is {around.state}"
                await self.note_end(await abort_run(self.directory, "budget", message, self.environ))
                return
            await anyio.sleep(ADMISSION_INTERVAL)

    async def note_end(self, snapshot: RunState) -> None:
        """Enter the end into the store and the session. Where either can't be written now, the next reader does it."""
        self._snapshots.append(snapshot)
        with suppress(MassgenError):
            await self.executor.enter_end(self.run_id, snapshot)
        if self.session is not None and self.session.exist:
            with suppress(MassgenError):
                if self.executor.stored is not None:
                    sessions = self.executor.stored.service.access.sessions
                    self.session.complete(sessions.runs(self.session.session_id), sessions.look)
                else:
                    self.session.keep(self.directory, snapshot)

    async def _heed_controls(self, begun: anyio.Event, news: NewsHost) -> None:
        await begun.wait()
        while True:
            with suppress(MassgenError):  # a store that is full or locked away is asked again
                await self.executor.apply_controls()
            with anyio.CancelScope(deadline=next_beat(CONTROL_INTERVAL)):
                await news.woken()


class _OwnProcess(RunHost):
    """The process of a person or a program, which executes one run: see `RunHost`. Whatever keeps the run from its end
    is raised. Told to stop, `ForegroundRun.execute` has cancelled the run already.
    """

    def __init__(
        self, run: ForegroundRun, on_start: Callable[[RunHandle], None], on_record: Callable[[LogRecord], None]
    ) -> None:
        self._run, self._on_start, self._on_record = run, on_start, on_record
        self.run_id, self.files, self.heartbeat = run.run_id, run.directory, STATUS_HEARTBEAT

    def on_start(self, handle: RunHandle) -> None:
        self._on_start(handle)

    def on_record(self, record: LogRecord) -> None:
        self._on_record(record)

    async def end(self, ended: ExecutedRun) -> None:
        await self._run.note_end(ended.snapshot)
        if ended.fault is not None:
            raise ended.fault

    async def park(self, error: JournalNewer) -> None:
        raise error

    async def release(self) -> None:
        raise MassgenError("invalid_action", f"run {self.run_id} was moved to another store while it was running here")

    async def wait_for_storage(self, fault: MassgenError) -> None:
        go_on = f"; `massgen resume {self.run_id}` then continues the run" if self._run.listed else ""
        raise MassgenError(fault.code, f"{fault}{go_on}")
