"""A worker: executes runs of a store of several machines, many at once, with the keys of its own environment.

procrastinate hands it jobs, tells with a heartbeat that it is alive, and knows which of its jobs were left by others.
Everything else of a run is in the store. What a job says is only that somebody has to look after the run.
"""

import logging
import os
import platform
import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, LiteralString, TypeVar

import anyio
import anyio.to_thread
import psycopg
from procrastinate import App, PsycopgConnector, exceptions
from procrastinate.connector import Notify
from procrastinate.jobs import DeleteJobCondition, Status
from procrastinate.worker import Worker as JobWorker

from massgen_mcp.backends.limiter import ProviderLimiters
from massgen_mcp.errors import JournalNewer, MassgenError
from massgen_mcp.runs.engine import RunFiles, RunRow
from massgen_mcp.runs.engine.locks import acquire
from massgen_mcp.runs.host.run_host import ExecutedRun, RunExecutor, RunHost, StoredRuns, prune_regularly, retried
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.postgres.database import SESSION, is_away
from massgen_mcp.runs.store.postgres.engine import ClusterEngine, WorkerNews
from massgen_mcp.runs.store.postgres.objects import LAST_EPOCH, Mirror
from massgen_mcp.runs.store.postgres.shares import SharedLimits
from massgen_mcp.runs.store.postgres.store import NESTED, TASK
from massgen_mcp.threads import imported
from massgen_mcp.workspace.snapshot import remove_tree

logger = logging.getLogger("massgen_mcp.worker")

HEARTBEAT_SECONDS = 1.0
STALLED_SECONDS = 6.0
"""A worker that has been silent for so long has lost its runs."""
FORGOTTEN_SECONDS = 3600.0
"""One that comes back sooner, as from a machine that slept, goes on."""
START_SECONDS = 120.0
"""For so long a worker that starts waits for PostgreSQL."""
LOOK_SECONDS = 1.0
"""Controls, and what others have lost, are looked for at least this often."""
REST_SECONDS = 5.0
AGAIN_SECONDS = 0.2
POLL_SECONDS = 5.0
NESTED_PLACES = 1000
"""Nested runs work in the place of the run that they are nested in."""

T = TypeVar("T")


async def work(engine: ClusterEngine, environ: Mapping[str, str], pools: Collection[str], places: int) -> None:
    """Until a signal. Brings the store up to date first. Raises `MassgenError`."""
    try:
        await _upgrade(engine)
        await imported("massgen_mcp.runs.view.reporting", "massgen_mcp.runs.host.assembly")  # no job waits for this
        await Worker(engine, environ, pools, places).work()
    finally:
        await anyio.to_thread.run_sync(engine.close)


async def _upgrade(engine: ClusterEngine) -> None:
    """Bring the store up to date as soon as PostgreSQL can be reached, which may start at the same time. Raises
    `MassgenError`.
    """
    deadline, waits = anyio.current_time() + START_SECONDS, False
    while True:
        try:
            await anyio.to_thread.run_sync(engine.upgrade)
        except MassgenError as error:
            cause = error.__cause__
            if not isinstance(cause, psycopg.Error) or not is_away(cause) or anyio.current_time() > deadline:
                raise
            if not waits:
                logger.warning("%s; this worker keeps trying for up to %g s", error, START_SECONDS)
            waits = True
        else:
            return
        await anyio.sleep(AGAIN_SECONDS)


class Worker:
    def __init__(self, engine: ClusterEngine, environ: Mapping[str, str], pools: Collection[str], places: int) -> None:
        self.engine, self._store = engine, engine.store
        self._environ = environ
        self._pools = pools
        self._name = f"{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.own = engine.home.path / "work" / self._name
        """Where no other process has files of runs."""
        self._executing: dict[str, anyio.CancelScope] = {}
        self._news = WorkerNews(engine.listener, engine.appender, self._executing.__contains__)
        self._service = RunService(engine, environ)
        self._limiters, self._shares = ProviderLimiters(shared=True), SharedLimits(engine.url, self._name)
        stored = StoredRuns(engine, self._service, self._news)
        self._executor = RunExecutor(environ, stored, self._limiters, reads_controls_first=True)
        self._jobs = App(
            connector=_RetryingConnector(conninfo=engine.url, min_size=1, max_size=4, configure=_configure)
        )
        self._jobs.task(name=TASK)(self._run)
        self._workers = [
            self._worker(pools, places),
            self._worker([f"{pool}{NESTED}" for pool in pools], NESTED_PLACES),
        ]

    def _worker(self, queues: Collection[str], places: int) -> JobWorker:
        return JobWorker(
            self._jobs,
            queues=list(queues),
            concurrency=places,
            fetch_job_polling_interval=POLL_SECONDS,
            delete_jobs=DeleteJobCondition.ALWAYS,
            install_signal_handlers=False,
            update_heartbeat_interval=HEARTBEAT_SECONDS,
            stalled_worker_timeout=FORGOTTEN_SECONDS,
        )

    async def work(self) -> None:
        await anyio.to_thread.run_sync(self._make_own)
        await retried(self._store.workers.register, self._name, self._pools)
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            async with self._jobs.open_async(), anyio.create_task_group() as aside:
                aside.start_soon(self._leave_on_signal, signals)
                for task in (self._news.serve, self._heed_controls, self._look_after_lost, self._share_limits):
                    aside.start_soon(task)
                aside.start_soon(prune_regularly, self.engine)
                async with anyio.create_task_group() as working:
                    for worker in self._workers:
                        working.start_soon(worker.run)
                aside.cancel_scope.cancel()
        with suppress(MassgenError):
            await anyio.to_thread.run_sync(self._store.workers.unregister, self._name)
            await self._limiters.renew_shares(self._shares.renew)
            await anyio.to_thread.run_sync(self._shares.leave)
        self._shares.close()

    def _make_own(self) -> None:
        """A place for files of runs, without those of workers that were killed here."""
        self.own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for lock in self.own.parent.glob("*.lock"):
            if (held := acquire(lock)) is not None:
                remove_tree(lock.with_suffix(""))
                lock.unlink(missing_ok=True)
                os.close(held)
        acquire(self.own.with_name(f"{self._name}.lock"))  # until this process is gone
        self.own.mkdir(mode=0o700)

    async def _leave_on_signal(self, signals: AsyncIterator[signal.Signals]) -> None:
        """Take no more runs, and hand over those that are executed here: nobody waits for their ends."""
        async for _ in signals:
            for worker in self._workers:
                worker.stop()
            for scope in list(self._executing.values()):
                scope.cancel()

    # -- one run --------------------------------------------------------------------------------------------------

    async def _run(self, run_id: str) -> None:
        """The job. However it ends, the run goes on with another one if it has to."""
        with anyio.CancelScope() as scope:
            self._executing[run_id] = scope
            try:
                await self._take(run_id)
            finally:
                if self._executing.get(run_id) is scope:  # it may have come back here, with another job
                    del self._executing[run_id]

    async def _take(self, run_id: str) -> None:
        taken = await retried(self._store.jobs.take, run_id, self._name)
        if taken is None:
            await self._finish(run_id)
            return
        row, epoch = taken
        self._news.tell(run_id)
        await self._executor.execute(_TakenRun(self, row, epoch))

    async def end(self, run: "_TakenRun", ended: ExecutedRun) -> None:
        """Enter the end of a run into the store, and report it, also while this worker stops."""
        with anyio.CancelScope(shield=True):
            await retried(self._store.jobs.end_taken, run.run_id, run.epoch, ended.snapshot)
            self._news.tell(run.run_id)
            await self.report(run, ended)

    async def report(self, run: "_TakenRun", ended: ExecutedRun) -> None:
        """Write the report of a run that has ended, and have its last files copied."""
        await self._executor.report(run.row, run.files, ended.snapshot)
        if run.mirror is not None:
            await retried(run.mirror.leave)

    async def _finish(self, run_id: str) -> None:
        """Write the last files of a run that has ended if its worker was lost just then."""
        with suppress(MassgenError):
            view = await self._service.watcher.get_run(run_id)
            if view.snapshot.end is not None and not view.directory.report.exists():
                await self._executor.execute(_EndedRun(self, view.row, LAST_EPOCH))

    # -- beside the runs ------------------------------------------------------------------------------------------

    async def _heed_controls(self) -> None:
        while True:
            with anyio.move_on_after(LOOK_SECONDS):
                await self._news.woken()
            if self._executing:
                try:
                    await self._executor.apply_controls()
                except MassgenError as error:  # they are wanted still
                    logger.warning("%s", error)

    async def _share_limits(self) -> None:
        """Providers are asked no more by all workers together than their limits allow. While PostgreSQL is away, calls
        begin until the leases end, and then wait for it, as the runs do.
        """
        while True:
            try:
                await self._limiters.renew_shares(self._shares.renew)
            except MassgenError as error:
                logger.warning("%s", error)
            await anyio.sleep(AGAIN_SECONDS)
            with anyio.move_on_after(LOOK_SECONDS - AGAIN_SECONDS):
                await self._limiters.shares_wanted()

    async def _look_after_lost(self) -> None:
        """Runs whose workers are gone get other ones, and so do those that have no job: one that lost its run may still
        have finished the job of its successor. Two workers look for all: they read everything that goes on.
        """
        unheard = set[int]()
        while True:
            await anyio.sleep(LOOK_SECONDS)
            try:
                looks = await anyio.to_thread.run_sync(self._store.workers.register, self._name, self._pools)
                unheard = await self._drop_lost_jobs(unheard, of_others=looks)
                lost = await anyio.to_thread.run_sync(self._store.jobs.hand_out_lost) if looks else []
            except (MassgenError, exceptions.ConnectorException) as error:  # it is asked again soon
                logger.warning("%s", error)
                continue
            if lost:
                logger.warning("continuing lost runs: %s", ", ".join(lost))

    async def _drop_lost_jobs(self, unheard: Collection[int], *, of_others: bool) -> set[int]:
        """Those of workers that are silent, and our own of which we hear nothing, for the second time: the reply to our
        asking for them was lost. Returns which of ours are `unheard` now.
        """
        manager = self._jobs.job_manager
        lost = list(await manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_SECONDS)) if of_others else []
        now = set[int]()
        for worker in self._workers:
            held = await manager.list_jobs_async(worker_id=worker.worker_id or 0, status=Status.DOING.value)
            idle = [job for job in held if job.id is not None and job.lock not in self._executing]
            now |= {job.id for job in idle if job.id is not None}
            lost += [job for job in idle if job.id in unheard]
        if lost:
            run_ids = await anyio.to_thread.run_sync(self._store.jobs.replace_jobs, [job.id for job in lost if job.id])
            logger.warning("took over these runs from lost workers: %s", ", ".join(run_ids))
        return now


class _TakenRun(RunHost):
    """A run that the worker has taken from the store: see `RunHost`."""

    mirror: Mirror | None

    def __init__(self, worker: Worker, row: RunRow, epoch: int) -> None:
        self._worker, self._engine = worker, worker.engine
        self.row, self.epoch = row, epoch
        self.run_id, self.resumes = row.run_id, row.resumes

    async def open_files(self) -> RunFiles:
        taken = self._engine.files.taken
        self.files, self.mirror = await anyio.to_thread.run_sync(taken, self.row, self.epoch, self._worker.own)
        return self.files

    async def end(self, ended: ExecutedRun) -> None:
        await self._worker.end(self, ended)

    async def park(self, error: JournalNewer) -> None:
        logger.warning("skipping run %s: %s", self.run_id, error)
        await retried(self._engine.store.leases.park_until_upgrade, self.run_id)

    async def release(self) -> None:
        with anyio.CancelScope(shield=True):
            await retried(self._engine.store.jobs.hand_over, self.run_id, self.epoch)
            await anyio.to_thread.run_sync(remove_tree, self._worker.own / str(self.epoch) / self.run_id)

    async def wait_for_storage(self, fault: MassgenError) -> None:
        logger.warning("run %s is waiting: %s", self.run_id, fault)
        await anyio.sleep(REST_SECONDS)

    async def stop(self) -> None:
        await self.release()


class _EndedRun(_TakenRun):
    """A run that has ended, and whose last files are written once more."""

    async def end(self, ended: ExecutedRun) -> None:
        await self._worker.report(self, ended)

    async def park(self, error: JournalNewer) -> None:
        raise error

    async def release(self) -> None:
        pass

    async def wait_for_storage(self, fault: MassgenError) -> None:
        raise fault


async def _configure(connection: psycopg.AsyncConnection[Any]) -> None:
    await connection.set_autocommit(True)  # procrastinate's statements are a transaction each, without two more trips
    await connection.execute(SESSION)


class _RetryingConnector(PsycopgConnector):
    """Asks again while PostgreSQL is away: procrastinate's worker would end instead."""

    async def execute_query_async(self, query: LiteralString, **arguments: object) -> None:
        await _again(lambda: super(_RetryingConnector, self).execute_query_async(query, **arguments))

    async def execute_query_one_async(self, query: LiteralString, **arguments: object) -> dict[str, Any]:
        return await _again(lambda: super(_RetryingConnector, self).execute_query_one_async(query, **arguments))

    async def execute_query_all_async(self, query: LiteralString, **arguments: object) -> list[dict[str, Any]]:
        return await _again(lambda: super(_RetryingConnector, self).execute_query_all_async(query, **arguments))

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        await _again(lambda: super(_RetryingConnector, self).listen_notify(on_notification, channels))


async def _again(call: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await call()
        except exceptions.ConnectorException as error:
            if not isinstance(error.__cause__, psycopg.Error) or not is_away(error.__cause__):
                raise
        await anyio.sleep(AGAIN_SECONDS)
