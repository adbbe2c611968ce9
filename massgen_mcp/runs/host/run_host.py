"""Executes runs in this process: each to its end, with its controls carried out, its end in the store, and its report.

The runner has one for many runs, a command line or a program one for its own. Which runs are executed, when controls
are looked for and what is tried again is for the process. Must not know how a run is shown.
"""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio.to_thread

from massgen_mcp.backends.limiter import ProviderLimiters
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.loader import EXAMPLE_PREFIX, parse_config, read_config, require_keys
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import JournalNewer, MassgenError, storage_fault
from massgen_mcp.events.record import LogRecord
from massgen_mcp.money.budget import Caps
from massgen_mcp.orchestration.nested_runs import NestedHost, NestedRunRequest, PreparedNestedRun
from massgen_mcp.request.question import check_question
from massgen_mcp.request.reach import NestedRunLimits, nested_config
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import Engine, FrozenRequest, NewRun, NewsHost, RunFiles, RunRow, new_run_id
from massgen_mcp.runs.host.announcing import Webhooks, notify
from massgen_mcp.runs.host.execute import RunHandle, break_off, execute_run
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
    """The run goes on in another store, and its execution has ended here in the middle."""


class RunHost:
    """Runs that are executed here share the limits of their providers."""

    def __init__(
        self,
        environ: Mapping[str, str],
        stored: StoredRuns | None,
        limiters: ProviderLimiters | None = None,
        *,
        hears_first: bool = False,
    ) -> None:
        """`stored` None: the runs are in no list, so nobody controls them and none can be started inside them.
        `hears_first`: the controls are looked at before a run's models are asked, for who looks only now and then.
        """
        self._environ = environ
        self._hears_first = hears_first
        self.stored = stored
        self._limiters = limiters or ProviderLimiters()
        self._handles: dict[str, RunHandle] = {}
        self._setups: dict[str, Callable[[], None]] = {}
        """What cuts them short, for the runs that are no further."""
        self._scopes: dict[str, anyio.CancelScope] = {}
        """What ends their execution here."""
        self._reports = anyio.CapacityLimiter(1)
        self._cancelled: set[str] = set()
        """Those whose setup a cancel has cut short: nothing else of them begins."""

    async def execute(
        self,
        run_id: str,
        directory: RunFiles,
        *,
        resumes: int = 0,
        on_start: Callable[[RunHandle], None] = lambda _: None,
        on_record: Callable[[LogRecord], None] = lambda _: None,
        on_news: Callable[[], None] = lambda: None,
        heartbeat: float = math.inf,
    ) -> ExecutedRun:
        """Take a run to its end, whatever goes wrong in it; the other arguments as `execute_run` has them. `on_news`
        is called after those who follow the run have heard; `resumes`: so many processes were lost with the run.

        Raises `JournalNewer`, `RunMoved`, and what `storage_fault` knows: the run can go on later.
        """
        if resumes > MAX_RESUMES:
            message = f"{resumes} runners were lost with this run"
            return ExecutedRun(await break_off(directory, "runner_lost", message, self._environ))

        def started(handle: RunHandle) -> None:
            self._setups.pop(run_id, None)
            self._handles[run_id] = handle
            on_start(handle)
            if run_id in self._cancelled:
                handle.do("cancel")

        def tell(milestone: bool) -> None:
            if self.stored is not None:
                self.stored.news.tell(run_id, milestone=milestone)
            on_news()

        scope = self._scopes[run_id] = anyio.CancelScope()
        try:
            with scope:
                snapshot = await execute_run(
                    directory,
                    run_id,
                    environ=self._environ,
                    on_setup=partial(self._setups.__setitem__, run_id),
                    on_start=started,
                    on_begun=self._hear,
                    on_record=on_record,
                    on_news=tell,
                    heartbeat=heartbeat,
                    limiters=self._limiters,
                    nested_host=self._nested_host(run_id),
                )
                return ExecutedRun(snapshot)
        except JournalNewer:
            raise
        except Exception as fault:
            if storage_fault(fault) is not None:
                raise
            message = f"{type(fault).__name__}: {fault}"
            return ExecutedRun(await break_off(directory, "internal", message, self._environ), fault)
        finally:
            self._setups.pop(run_id, None)
            self._handles.pop(run_id, None)
            self._cancelled.discard(run_id)
            if self._scopes.get(run_id) is scope:
                del self._scopes[run_id]
        raise RunMoved(run_id)

    def _nested_host(self, run_id: str) -> Callable[[FrozenRequest], NestedHost] | None:
        stored = self.stored
        if stored is None:
            return None
        return lambda request: NestedRunHost(stored.engine, stored.service, self._environ, run_id, request)

    async def heed_controls(self) -> None:
        """Carry out what others want of the runs that have begun here. Raises `MassgenError` store_unavailable,
        disk_full: it is wanted still.
        """
        if self.stored is None:
            return
        store = self.stored.engine.store
        controls = await anyio.to_thread.run_sync(store.controls, [*self._scopes])
        for control in controls:
            if control.action == "move" and (scope := self._scopes.get(control.run_id)) is not None:
                scope.cancel()
            if (cut_short := self._setups.get(control.run_id)) and control.action in ("cancel", "finish_now"):
                cut_short()  # it is carried out when the run has begun
                if control.action == "cancel":
                    self._cancelled.add(control.run_id)
        for run_id in dict.fromkeys(control.run_id for control in controls):
            handle = self._handles.get(run_id)
            if handle is None:
                continue  # it has ended meanwhile
            if done := await handle.heed(control for control in controls if control.run_id == run_id):
                await anyio.to_thread.run_sync(store.done, done)
                self.stored.news.tell(run_id)

    async def _hear(self) -> None:
        """What was wanted of a run while nobody executed it is carried out before its models are asked."""
        if not self._hears_first:
            return
        try:
            await self.heed_controls()
        except MassgenError as error:  # they are wanted still
            logger.warning("%s", error)

    async def enter_end(self, run_id: str, snapshot: RunState) -> None:
        """Tell the store how a run ended, and those who follow it. Raises `MassgenError`: it has to be told again."""
        if self.stored is None:
            return
        try:
            await anyio.to_thread.run_sync(self.stored.engine.store.end, run_id, snapshot)
        except MassgenError as error:
            if error.code != "unknown_run":
                raise
            logger.warning("run %s has ended, and the store does not know it any more", run_id)
        self.stored.news.tell(run_id)

    async def report(self, row: RunRow, directory: RunFiles, snapshot: RunState) -> None:
        """Write the report of a run whose end is known; one at a time, so that other runs are not slowed. Then tell who
        waits for its end.
        """
        await anyio.to_thread.run_sync(self.write_report, row.run_id, directory, snapshot, limiter=self._reports)
        if row.parent is None:
            for fault in await self._tell_end(row.run_id, snapshot):
                logger.warning("run %s has ended, and not everybody was told: %s", row.run_id, fault)

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
            return stored.engine.files.of(stored.engine.store.get(nested))

        try:
            write_report(directory, snapshot, files_of, self._environ)
        except Exception as error:  # noqa: BLE001 - what only looks at a run must not end it
            logger.warning("run %s has no report: %s", run_id, error)
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
            if (earlier := self._engine.store.reusable(run, "use_existing")) is not None:
                return self._prepared(earlier.row)
            frozen = self._request.inside(self._run_id, run.question, config)
            files.create(run.run_id, frozen, redactor, run)
            files.publish(run.run_id)
            return self._prepared(self._engine.store.add(run).row)

    def _nested_config(self, wanted: NestedRunRequest) -> tuple[Config | None, str]:
        """The config that is asked for, and in words where it came from. Its own paths are not for others to give."""
        if wanted.written is not None:
            text, source, environ = wanted.written, "a config of the agent's own", dict[str, str]()
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
        row = self._engine.store.get(run_id)
        if row.parent != self._run_id:
            raise MassgenError("nesting_refused", f"{run_id} was not started inside {self._run_id}")
        return self._prepared(row)

    def _prepared(self, row: RunRow) -> PreparedNestedRun:
        request = self._engine.files.of(row).read_request()
        budget = request.config.budget
        return PreparedNestedRun(
            row.run_id, request.question, row.config, Caps(budget.max_usd, budget.most_tokens, budget.max_calls)
        )

    async def begin(self, run_id: str) -> None:
        view = await self._service.look(run_id)
        if not view.row.admitted:
            await anyio.to_thread.run_sync(self._engine.store.admit, run_id)
        fingerprint = self._dispatch.identity(view.directory.read_request().config)
        send = self._dispatch.adopt if view.state == "interrupted" and fingerprint != view.row.fingerprint else None
        await anyio.to_thread.run_sync(send or self._dispatch.see_to, view)

    async def refuse(self, run_id: str, reason: str) -> None:
        row = await anyio.to_thread.run_sync(self._engine.store.get, run_id)
        ended = await break_off(self._engine.files.of(row), "budget", reason, self._environ)
        await anyio.to_thread.run_sync(self._engine.store.end, run_id, ended)

    async def look(self, run_id: str) -> RunState:
        return (await self._service.look(run_id)).snapshot

    async def wait(self, run_id: str, seconds: float) -> RunState:
        return (await self._service.wait(run_id, until="terminal", seconds=seconds, cursor=None)).snapshot

    async def cancel(self, run_id: str) -> None:
        await self._service.control(run_id, "cancel")

    async def files(self, run_id: str) -> Path:
        row = await anyio.to_thread.run_sync(self._engine.store.get, run_id)
        return self._engine.files.of(row).path
