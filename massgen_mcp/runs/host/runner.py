"""The runner: a detached process that executes many runs at once, outlives whoever started it, and leaves when idle.

One per fingerprint of credentials (see `runner_endpoint`). It takes queued runs from the store, executes each as a
task, and carries out their controls. `python -m massgen_mcp.runs.host.runner FINGERPRINT LOCK`, where LOCK is the
inherited descriptor of the lock that says that it is starting.
"""

import gc
import os
import sys

if __name__ == "__main__":
    if os.fork():
        os._exit(0)  # before anything is imported: whoever started us must not wait for us, nor reap us later
    gc.disable()  # until all is imported: nothing of that ever goes, so no collection has to look through it

import logging
import math
import secrets
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress

import anyio.abc
import anyio.to_thread

from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.errors import JournalNewer, MassgenError
from massgen_mcp.home import find_home
from massgen_mcp.open_files import allow_open_files
from massgen_mcp.redaction import redacted_output
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import Engine, NewsHost, RunFiles, RunRow
from massgen_mcp.runs.host.capacity import Capacity, Load
from massgen_mcp.runs.host.execute import RunHandle
from massgen_mcp.runs.host.run_host import ExecutedRun, RunExecutor, RunHost, StoredRuns, prune_regularly, retried
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import LocalEngine, local_engine

logger = logging.getLogger("massgen_mcp.runner")

CLAIM_SECONDS = 0.1
"""While runs are held back, the queue is looked at no sooner than this after the last time."""
HEARTBEAT = 1.0
"""Seconds after which the store is looked at even without news."""
REST_SECONDS = 5.0


class Runner:
    def __init__(self, engine: Engine, fingerprint: str, environ: Mapping[str, str], news_host: NewsHost) -> None:
        self._engine = engine
        self._store, self._liveness = engine.store, engine.liveness
        self._fingerprint = fingerprint
        self._environ = environ
        self._id = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._executor = RunExecutor(environ, StoredRuns(engine, RunService(engine, environ), news_host))
        self._active: dict[str, RunHandle | None] = {}
        self._ended: dict[str, RunState] = {}
        """Runs whose end the store does not know yet."""
        self._resting: set[str] = set()
        """Active runs that wait until their storage has room again."""
        self._news = anyio.Event()
        self._capacity = Capacity(engine.files, environ)
        self._left = False
        """Not all of the queue could be taken, however many places there are."""
        self._held_back: frozenset[str] = frozenset()
        """Runs that wait because of the limits of their providers."""
        self._claimed_at = -math.inf
        self._unreported = 0
        """Runs that have ended and have no report yet."""

    async def work(self, woken: Callable[[], Awaitable[None]]) -> None:
        """Execute runs until there has been nothing to do for the idle time. `woken` returns when we were woken."""
        lost = await anyio.to_thread.run_sync(self._store.leases.interrupt, self._fingerprint)
        if lost:
            logger.warning("continuing the runs of a background process that stopped: %s", ", ".join(lost))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._hear, woken)
            tasks.start_soon(prune_regularly, self._engine)
            idle_since = time.monotonic()
            while True:
                self._news = anyio.Event()
                try:
                    await self._index_ended()
                    await self._take_runs(tasks)
                    await self._executor.apply_controls()
                except MassgenError as error:  # a store that is full or locked away: what runs goes on
                    logger.warning("%s", error)
                if self._active or self._ended or self._unreported:
                    idle_since = time.monotonic()
                left = self._engine.home.runner_idle_seconds - (time.monotonic() - idle_since)
                if left <= 0:
                    break
                with anyio.move_on_after(min(HEARTBEAT, left)):
                    await self._news.wait()
            tasks.cancel_scope.cancel()

    async def _hear(self, woken: Callable[[], Awaitable[None]]) -> None:
        while True:
            await woken()
            self._news.set()

    async def _take_runs(self, tasks: anyio.abc.TaskGroup) -> None:
        runs = {
            run_id: handle and handle.state for run_id, handle in self._active.items() if run_id not in self._resting
        }
        load = self._capacity.load(runs)
        self._claimed_at = time.monotonic()
        for row in await anyio.to_thread.run_sync(self._claim, load):
            if row.run_id in self._active or row.run_id in self._ended:
                continue  # its row was lost and made again: it goes on here
            self._active[row.run_id] = None
            self._executor.notify(row.run_id)
            tasks.start_soon(self._executor.execute, _ClaimedRun(self, row, self._engine.files.of(row)))

    def _claim(self, load: Load) -> list[RunRow]:
        """The queued runs whose turn it is. Places of runners that were lost are free again."""
        self._left, held_before, self._held_back = False, self._held_back, frozenset()
        at_work = self._store.queue.list_at_work()
        if not any(fingerprint == self._fingerprint and state != "running" for fingerprint, state, _ in at_work):
            return []
        others = {fingerprint for fingerprint, _, _ in at_work} - {self._fingerprint}
        absent = {fingerprint for fingerprint in others if not self._liveness.runner_alive(fingerprint)}
        for fingerprint, state, runner in at_work:
            if state == "running" and fingerprint in absent:
                self._store.leases.interrupt(fingerprint, of_runner=runner)
        queue = self._store.queue.list_waiting(self._fingerprint)
        choice = self._capacity.choose(queue, load)
        self._left = len(choice.chosen) < len(queue)
        claimed = self._store.queue.claim(
            self._fingerprint,
            self._id,
            max_running=self._engine.home.limits.running,
            absent=absent,
            among=choice.chosen,
            held_back=choice.held_back,
        )
        self._held_back = frozenset(choice.held_back)
        if self._held_back - held_before:
            self._wake_others()  # the places that were kept for these are theirs now
        return claimed

    def make_room(self) -> None:
        """Look at the queue soon: what has happened in a run may be the end of a call, which makes room for a run that
        waits.
        """
        if self._left and time.monotonic() > self._claimed_at + CLAIM_SECONDS:
            self._news.set()

    async def _index_ended(self) -> None:
        """Tell the store how runs ended, and those who wait for a place that there is one."""
        if not self._ended:
            return
        for run_id, snapshot in list(self._ended.items()):
            await self._executor.enter_end(run_id, snapshot)
            del self._ended[run_id]
        await anyio.to_thread.run_sync(self._wake_others)

    def _wake_others(self) -> None:
        for fingerprint in {
            fingerprint for fingerprint, state, _ in self._store.queue.list_at_work() if state != "running"
        }:
            if fingerprint != self._fingerprint:
                self._liveness.wake(fingerprint)

    def follow(self, run_id: str, handle: RunHandle) -> None:
        """Take the handle of a run that has started."""
        self._active[run_id] = handle
        self._news.set()

    async def end(self, row: RunRow, directory: RunFiles, ended: RunState) -> None:
        """Have the end of a run entered into the store, and report it."""
        self._ended[row.run_id] = ended
        self._leave(row.run_id)
        self._unreported += 1
        try:
            await self._executor.report(row, directory, ended)
        finally:
            self._unreported -= 1

    async def park(self, run_id: str) -> None:
        """Leave a run that only a newer version can continue."""
        await retried(self._store.leases.park_until_upgrade, run_id)
        self._executor.notify(run_id)
        self._leave(run_id)

    async def release(self, run_id: str) -> None:
        """Leave a run to the process that takes it next."""
        await retried(self._store.leases.release, run_id, self._id)
        self._executor.notify(run_id)
        self._resting.discard(run_id)
        self._leave(run_id)

    async def rest(self, directory: RunFiles, run_id: str) -> None:
        """Return as soon as the machine's storage has room again for a run that it refused."""
        self._active[run_id] = None
        self._resting.add(run_id)
        while True:
            await anyio.sleep(REST_SECONDS)
            with suppress(OSError, MassgenError):
                await anyio.to_thread.run_sync(directory.probe)
                return

    def _leave(self, run_id: str) -> None:
        """Forget a run that is no longer executed here."""
        del self._active[run_id]
        self._news.set()


class _ClaimedRun(RunHost):
    """A run that the runner has claimed: see `RunHost`. Its failure never affects another run. Where the runner is told
    to stop, the next one finds that it is gone.
    """

    def __init__(self, runner: Runner, row: RunRow, directory: RunFiles) -> None:
        self._runner, self._row, self.files = runner, row, directory
        self.run_id, self.resumes = row.run_id, row.resumes

    def on_start(self, handle: RunHandle) -> None:
        self._runner.follow(self.run_id, handle)

    def on_news(self) -> None:
        self._runner.make_room()

    async def end(self, ended: ExecutedRun) -> None:
        await self._runner.end(self._row, self.files, ended.snapshot)

    async def park(self, error: JournalNewer) -> None:
        logger.warning("skipping run %s: %s", self.run_id, error)
        await self._runner.park(self.run_id)

    async def release(self) -> None:
        await self._runner.release(self.run_id)

    async def wait_for_storage(self, fault: MassgenError) -> None:
        logger.warning("run %s is waiting: %s", self.run_id, fault)
        await self._runner.rest(self.files, self.run_id)


async def _serve(engine: LocalEngine, fingerprint: str, listens: Callable[[], None]) -> None:
    """Be the runner for this fingerprint as long as there is work; leave it only when the queue is certainly empty.
    `listens` is called as soon as it can be woken.
    """
    with engine.liveness.hold(fingerprint) as held:
        if not held:
            return  # somebody else does the work
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            news_host = engine.liveness.runner_news(fingerprint, os.environ)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_leave_on_signal, signals, tasks.cancel_scope)
                tasks.start_soon(news_host.serve)
                while True:
                    with engine.liveness.listen(fingerprint) as listening:
                        listens()
                        await Runner(engine, fingerprint, os.environ, news_host).work(listening.woken)
                    # Wakers are refused from here on and start a successor; what came before that is in the queue.
                    if not await anyio.to_thread.run_sync(engine.store.queue.list_waiting, fingerprint):
                        break
                tasks.cancel_scope.cancel()
    engine.close()


async def _leave_on_signal(signals: AsyncIterator[signal.Signals], scope: anyio.CancelScope) -> None:
    async for _ in signals:
        scope.cancel()


def main() -> None:
    os.umask(0o077)
    allow_open_files()  # each run has a journal, a log, workspaces and connections open
    fingerprint, lock = sys.argv[1], int(sys.argv[2])
    os.set_inheritable(lock, False)
    with redacted_output(redactor_for(os.environ)), ExitStack() as starting:
        logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        starting.callback(os.close, lock)
        gc.freeze()
        gc.enable()
        anyio.run(_serve, local_engine(find_home(os.environ)), fingerprint, starting.close)


if __name__ == "__main__":
    main()
