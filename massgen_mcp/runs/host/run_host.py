"""Executes runs in this process: each to its end, with its controls carried out, its end in the store, and its report.

The runner has one for many runs, a command line or a program one for its own. Which runs are executed, when controls
are looked for and what is tried again is for the process. Must not know how a run is shown.
"""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import anyio.to_thread

from massgen_mcp.backends.limiter import ProviderLimiters
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.loader import EXAMPLE_PREFIX, parse_config, read_config, require_keys
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import JournalNewer, MassgenError, root_causes, storage_fault
from massgen_mcp.events.record import LogRecord
from massgen_mcp.money.budget import Caps
from massgen_mcp.orchestration.nested_runs import NestedHost, NestedRunRequest, PreparedNestedRun
from massgen_mcp.request.question import check_question
from massgen_mcp.request.reach import NestedRunLimits, nested_config
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import Engine, FrozenRequest, NewRun, NewsHost, RunFiles, RunRow, TakenOver, new_run_id
from massgen_mcp.runs.host.announcing import Webhooks, notify
from massgen_mcp.runs.host.execute import RunContext, RunHandle, RunObserver, abort_run, execute_run
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.starting import Dispatch
from massgen_mcp.runs.store.retention import prune
from massgen_mcp.threads import in_thread

logger = logging.getLogger("massgen_mcp.run")

MAX_RESUMES = 20
"""A run that has been with so many runners that were lost is given up."""
PRUNE_INTERVAL = 3600.0
AGAIN_SECONDS = 1.0
"""After so long a store that could not be used is asked again."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredRuns:
    """Where runs are kept that can be found again, and who hears of them."""

    engine: Engine
    service: RunService
    news: NewsHost


@dataclass(frozen=True, slots=True)
class ExecutedRun:
    """How a run ended. `fault`: what broke it, if that was no part of it."""

    snapshot: RunState
    fault: Exception | None = None


class RunMoved(Exception):
    """The run continues in another store, and its execution has ended here in the middle."""


class RunHost:
    """The process that executes a run, as the executor needs it: the runner, a worker of several machines, or the
    process of a person or a program. A subclass overrides what that process has to do something for.
    """

    run_id: str
    files: RunFiles
    """There once `open_files` has returned."""
    resumes: int = 0
    """How many processes were lost with the run."""
    heartbeat: float = math.inf
    """See `RunObserver.heartbeat`."""

    async def open_files(self) -> RunFiles:
        """Return the run's files, fetched from elsewhere if they have to be."""
        return self.files

    def on_start(self, handle: RunHandle) -> None:
        """See `RunObserver.on_start`."""

    def on_record(self, record: LogRecord) -> None:
        """See `RunObserver.on_record`."""

    def on_news(self) -> None:
        """Take notice of news that those who follow the run have been notified of."""

    async def end(self, ended: ExecutedRun) -> None:
        """Make the end of the run known."""

    async def park(self, error: JournalNewer) -> None:
        """Leave the run as it is, because only a newer version can continue it; or raise `error`."""

    async def release(self) -> None:
        """Leave the run to the process that takes it next."""

    async def wait_for_storage(self, fault: MassgenError) -> None:
        """Return when the storage that refused the run may have room again; or raise `fault`."""

    async def stop(self) -> None:
        """Leave the run because this process was told to stop. Is not cancelled."""


@dataclass(slots=True)
class _Execution(RunObserver):
    """One run that is being executed, and how far that is."""

    run_id: str
    host: RunHost
    executor: "RunExecutor"
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """Cancelled, it ends the execution here, and not the run."""
    cut_short: Callable[[], None] | None = None
    """Cuts the setup short, while there is one."""
    handle: RunHandle | None = None
    cancelled: bool = False
    """A cancel has cut the setup short: nothing else of the run begins."""

    def __post_init__(self) -> None:
        self.heartbeat = self.host.heartbeat

    def on_setup(self, cut_short: Callable[[], None]) -> None:
        self.cut_short = cut_short

    def on_start(self, handle: RunHandle) -> None:
        self.cut_short, self.handle = None, handle
        self.host.on_start(handle)
        if self.cancelled:
            handle.do("cancel")

    async def before_models(self) -> None:
        await self.executor.apply_waiting_controls()

    def on_record(self, record: LogRecord) -> None:
        self.host.on_record(record)

    def on_news(self, milestone: bool) -> None:
        self.executor.notify(self.run_id, milestone=milestone)
        self.host.on_news()


class RunExecutor:
    """Executes runs in this process, with one policy for whatever ends their execution. Runs of one executor keep the
    limits of their providers together.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        stored: StoredRuns | None,
        limiters: ProviderLimiters | None = None,
        *,
        reads_controls_first: bool = False,
    ) -> None:
        """`stored` None: the runs are in no list, so they can't be controlled and no run can be started inside them.
        `reads_controls_first`: before the models of a run are asked, for a process that rarely reads controls.
        """
        self._environ = environ
        self._reads_controls_first = reads_controls_first
        self.stored = stored
        self._limiters = limiters or ProviderLimiters()
        self._executions: dict[str, _Execution] = {}
        self._reports = anyio.CapacityLimiter(1)

    async def execute(self, host: RunHost) -> None:
        """Take a run to its end, or leave it to another process, as `host` does that.

        Raises what is no fault of the run or of the machine's storage.
        """
        run_id = host.run_id
        try:
            ended = await self._take_to_end(host)
        except JournalNewer as error:
            await host.park(error)
        except RunMoved:
            await host.release()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await host.stop()
            raise
        except Exception as error:
            if any(isinstance(cause, TakenOver) for cause in root_causes(error)):
                logger.warning("run %s continues elsewhere", run_id)
                return
            if (fault := storage_fault(error)) is None:
                raise
            await host.wait_for_storage(fault)
            await host.release()
        else:
            if ended.fault is not None:
                logger.error("run %s broke", run_id, exc_info=ended.fault)
            await host.end(ended)

    async def _take_to_end(self, host: RunHost) -> ExecutedRun:
        """Execute the run, whatever goes wrong in it.

        Raises `JournalNewer`, `RunMoved`, and what `storage_fault` knows: the run can go on later.
        """
        run_id, files = host.run_id, await host.open_files()
        if host.resumes > MAX_RESUMES:
            message = f"{host.resumes} background processes stopped unexpectedly while executing this run"
            return ExecutedRun(await abort_run(files, "runner_lost", message, self._environ))
        execution = self._executions[run_id] = _Execution(run_id, host, self)
        context = RunContext(self._environ, execution, self._limiters, self._nested_host(run_id))
        try:
            with execution.scope:
                return ExecutedRun(await execute_run(files, run_id, context))
        except JournalNewer:
            raise
        except Exception as fault:
            if storage_fault(fault) is not None:
                raise
            message = f"{type(fault).__name__}: {fault}"
            return ExecutedRun(await abort_run(files, "internal", message, self._environ), fault)
        finally:
            if self._executions.get(run_id) is execution:
                del self._executions[run_id]
        raise RunMoved(run_id)

    def _nested_host(self, run_id: str) -> Callable[[FrozenRequest], NestedHost] | None:
        stored = self.stored
        if stored is None:
            return None
        return lambda request: NestedRunHost(stored.engine, stored.service, self._environ, run_id, request)

    async def apply_controls(self) -> None:
        """Carry out the controls that were requested of the runs executed here. Raises `MassgenError`
        store_unavailable, disk_full: they stay requested.
        """
        if self.stored is None:
            return
        store = self.stored.engine.store
        controls = await anyio.to_thread.run_sync(store.controls.list_open, [*self._executions])
        for control in controls:
            execution = self._executions.get(control.run_id)
            if execution is None:
                continue  # it has ended meanwhile
            if control.action == "move":
                execution.scope.cancel()
            if execution.cut_short is not None and control.action in ("cancel", "finish_now"):
                execution.cut_short()  # the control is carried out when the run has begun
                execution.cancelled = execution.cancelled or control.action == "cancel"
        for run_id in dict.fromkeys(control.run_id for control in controls):
            execution = self._executions.get(run_id)
            if execution is None or execution.handle is None:
                continue
            if done := await execution.handle.heed(control for control in controls if control.run_id == run_id):
                await anyio.to_thread.run_sync(store.controls.complete, done)
                self.notify(run_id)

    async def apply_waiting_controls(self) -> None:
        """Carry out, before models are asked, the controls that were requested while no process executed the run."""
        if not self._reads_controls_first:
            return
        try:
            await self.apply_controls()
        except MassgenError as error:  # they stay requested
            logger.warning("%s", error)

    def notify(self, run_id: str, *, milestone: bool = True) -> None:
        """Notify those who follow the run that there is news."""
        if self.stored is not None:
            self.stored.news.tell(run_id, milestone=milestone)

    async def enter_end(self, run_id: str, snapshot: RunState) -> None:
        """Tell the store how a run ended, and those who follow it. Raises `MassgenError`: it has to be told again."""
        if self.stored is None:
            return
        try:
            await anyio.to_thread.run_sync(self.stored.engine.store.leases.end, run_id, snapshot)
        except MassgenError as error:
            if error.code != "unknown_run":
                raise
            logger.warning("run %s has ended, but the run store no longer has it", run_id)
        self.notify(run_id)

    async def report(self, row: RunRow, directory: RunFiles, snapshot: RunState) -> None:
        """Write the report of a run whose end is known; one at a time, so that other runs are not slowed. Then tell who
        waits for its end.
        """
        await anyio.to_thread.run_sync(self.write_report, row.run_id, directory, snapshot, limiter=self._reports)
        if row.parent is None:
            for fault in await self._tell_end(row.run_id, snapshot):
                logger.warning("run %s has ended, but some subscribers weren't notified: %s", row.run_id, fault)

    async def _tell_end(self, run_id: str, snapshot: RunState) -> list[str]:
        """The user's own program, and the servers of the operator. Returns what went wrong."""
        failed = await notify(run_id, snapshot, self._environ)
        try:
            hooks = await Webhooks.of(self._environ).tell(run_id, snapshot)
        except MassgenError as error:
            hooks = [str(error)]
        return [*([failed] if failed else []), *hooks]

    def write_report(self, run_id: str, directory: RunFiles, snapshot: RunState) -> str:
        """Write the page of a run whose answer is delivered. Returns why that failed, else an empty string."""
        from massgen_mcp.runs.view.reporting import write_report  # nothing starts with it

        stored = self.stored

        def files_of(nested: str) -> RunFiles:
            if stored is None:
                raise LookupError(nested)
            return stored.engine.files.of(stored.engine.store.index.get(nested))

        try:
            write_report(directory, snapshot, files_of, self._environ)
        except Exception as error:  # noqa: BLE001 - what only looks at a run must not end it
            logger.warning("cannot write the report of run %s: %s", run_id, error)
            return f"{type(error).__name__}: {error}"
        return ""


async def retried(call: Callable[..., T], *arguments: object) -> T:
    """What the call returns once the store answers."""
    while True:
        try:
            return await anyio.to_thread.run_sync(call, *arguments)
        except MassgenError as error:
            if storage_fault(error) is None:
                raise
            logger.warning("%s", error)
        await anyio.sleep(AGAIN_SECONDS)


async def prune_regularly(engine: Engine) -> None:
    """Until it is cancelled."""
    while True:
        try:
            pruned = await anyio.to_thread.run_sync(prune, engine)
        except MassgenError as error:
            logger.warning("%s", error)
        else:
            for removed in pruned.removed:
                logger.info("pruned the %s of %s, %d bytes", removed.what, removed.run_id, removed.bytes)
            for run_id, cause in pruned.failed:
                logger.warning("cannot prune %s: %s", run_id, cause)
        await anyio.sleep(PRUNE_INTERVAL)


# ---------------------------------------------------------------------------------------------------------------------
# Runs that are started inside a run, as the store keeps them and a runner executes them: see `NestedHost`.
# A runner needs no place for them (`runs/engine/claiming.py`).


OWN_TEAM = "a team like its own"


class NestedRunHost:
    """For the runs that are started inside one run. `request` is that run's."""

    def __init__(
        self, engine: Engine, service: RunService, environ: Mapping[str, str], run_id: str, request: FrozenRequest
    ) -> None:
        self._engine = engine
        self._service = service
        self._environ = environ
        self._run_id = run_id
        self._request = request
        self._dispatch = Dispatch(engine, environ)

    @in_thread
    def prepare(self, wanted: NestedRunRequest, caps: Caps, seconds: float, key: str) -> PreparedNestedRun:
        """Its row is there from now on, not admitted: it is found again by its key, and pruning leaves it alone."""
        check_question(wanted.question)
        own, source = self._nested_config(wanted)
        bounds = NestedRunLimits(caps.usd, caps.tokens, caps.calls, min(seconds, wanted.max_seconds or seconds))
        config = nested_config(self._request.config, own, bounds, self._environ)
        require_keys(config, self._environ)
        redactor = redactor_for(self._environ, [agent.backend for agent in config.agents])
        run = NewRun(
            new_run_id(),
            redactor.text(wanted.question),
            source,
            self._dispatch.identity(config),
            request_hash="",
            idempotency_key=f"{self._run_id}/{key}",
            parent=self._run_id,
            admitted=False,
        )
        files = self._engine.files
        with files.making():
            if (earlier := self._engine.store.queue.find_reusable(run, "use_existing")) is not None:
                return self._prepared(earlier.row)
            frozen = self._request.inside(self._run_id, run.question, config)
            files.create(run.run_id, frozen, redactor, run)
            files.publish(run.run_id)
            return self._prepared(self._engine.store.queue.add(run).row)

    def _nested_config(self, wanted: NestedRunRequest) -> tuple[Config | None, str]:
        """The config that is asked for, and in words where it came from. Its own paths are not for others to give."""
        if wanted.written is not None:
            text, source, environ = wanted.written, "a config that the agent wrote", dict[str, str]()
        elif wanted.config is not None:
            source = wanted.config.removeprefix(EXAMPLE_PREFIX)
            text, environ = read_config(f"{EXAMPLE_PREFIX}{source}"), self._environ
        else:
            return None, OWN_TEAM
        config = parse_config(text, source, environ, base_dir=self._engine.home.path)
        orchestrator = config.orchestrator.model_copy(update={"context_paths": ()})
        return config.model_copy(update={"orchestrator": orchestrator}), source

    @in_thread
    def prepared(self, run_id: str) -> PreparedNestedRun:
        row = self._engine.store.index.get(run_id)
        if row.parent != self._run_id:
            raise MassgenError("nesting_refused", f"{run_id} isn't a nested run of {self._run_id}")
        return self._prepared(row)

    def _prepared(self, row: RunRow) -> PreparedNestedRun:
        request = self._engine.files.of(row).read_request()
        budget = request.config.budget
        return PreparedNestedRun(
            row.run_id, request.question, row.config, Caps(budget.max_usd, budget.most_tokens, budget.max_calls)
        )

    async def begin(self, run_id: str) -> None:
        view = await self._service.watcher.get_run(run_id)
        if not view.row.admitted:
            await anyio.to_thread.run_sync(self._engine.store.queue.admit, run_id)
        fingerprint = self._dispatch.identity(view.directory.read_request().config)
        send = self._dispatch.adopt if view.state == "interrupted" and fingerprint != view.row.fingerprint else None
        await anyio.to_thread.run_sync(send or self._dispatch.see_to, view)

    async def refuse(self, run_id: str, reason: str) -> None:
        row = await anyio.to_thread.run_sync(self._engine.store.index.get, run_id)
        ended = await abort_run(self._engine.files.of(row), "budget", reason, self._environ)
        await anyio.to_thread.run_sync(self._engine.store.leases.end, run_id, ended)

    async def look(self, run_id: str) -> RunState:
        return (await self._service.watcher.get_run(run_id)).snapshot

    async def wait(self, run_id: str, seconds: float) -> RunState:
        return (await self._service.watcher.wait(run_id, until="terminal", seconds=seconds, cursor=None)).snapshot

    async def cancel(self, run_id: str) -> None:
        await self._service.control(run_id, "cancel")

    async def files(self, run_id: str) -> Path:
        row = await anyio.to_thread.run_sync(self._engine.store.index.get, run_id)
        return self._engine.files.of(row).path
