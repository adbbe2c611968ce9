"""The runner: a detached process that executes many runs at once, outlives whoever started it, and leaves when idle.

One per fingerprint of credentials (see `summons`). It takes queued runs from the store, executes each as a task, and
does what is wanted of them. `python -m massgen_mcp.runs.runner FINGERPRINT`.
"""

import os
import sys

if __name__ == "__main__" and os.fork():
    os._exit(0)  # before anything is imported: whoever started us must not wait for us, nor reap us later

import logging
import secrets
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress

import anyio
import anyio.abc
import anyio.to_thread

from massgen_mcp.errors import FailureReason, MassgenError
from massgen_mcp.events import RunFailed
from massgen_mcp.home import Home, find_home
from massgen_mcp.runs.directory import RunDirectory
from massgen_mcp.runs.execute import RunHandle, execute_run
from massgen_mcp.runs.journal import JournalReader, JournalWriter
from massgen_mcp.runs.store import RunRow, Store
from massgen_mcp.runs.summons import Listening, Post
from massgen_mcp.views.snapshot import TERMINAL_STATES, RunSnapshot, RunState

logger = logging.getLogger("massgen_mcp.runner")

MAX_CONCURRENT_RUNS = 50
MAX_RESUMES = 20
"""A run that has been with so many runners that were lost is given up."""
HEARTBEAT = 1.0
"""Seconds after which the store is looked at even without news."""


class Runner:
    def __init__(self, home: Home, store: Store, fingerprint: str, environ: Mapping[str, str]) -> None:
        self._home = home
        self._store = store
        self._fingerprint = fingerprint
        self._environ = environ
        self._id = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._active: dict[str, RunHandle | None] = {}
        self._news = anyio.Event()

    async def work(self, listening: Listening) -> None:
        """Execute runs until there has been nothing to do for the idle time."""
        lost = await anyio.to_thread.run_sync(self._store.interrupt, self._fingerprint)
        if lost:
            logger.warning("going on with the runs of a lost runner: %s", ", ".join(lost))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._hear, listening)
            idle_since = time.monotonic()
            while True:
                self._news = anyio.Event()
                await self._take_runs(tasks)
                await self._heed_controls()
                if self._active:
                    idle_since = time.monotonic()
                left = self._home.runner_idle_seconds - (time.monotonic() - idle_since)
                if left <= 0:
                    break
                with anyio.move_on_after(min(HEARTBEAT, left)):
                    await self._news.wait()
            tasks.cancel_scope.cancel()

    async def _hear(self, listening: Listening) -> None:
        while True:
            await anyio.wait_readable(listening.descriptor)
            listening.drain()
            self._news.set()

    async def _take_runs(self, tasks: anyio.abc.TaskGroup) -> None:
        room = MAX_CONCURRENT_RUNS - len(self._active)
        if room <= 0:
            return
        for row in await anyio.to_thread.run_sync(self._store.claim, self._fingerprint, self._id, room):
            self._active[row.run_id] = None
            tasks.start_soon(self._execute, row)

    async def _heed_controls(self) -> None:
        started = {run_id: handle for run_id, handle in self._active.items() if handle is not None}
        controls = await anyio.to_thread.run_sync(self._store.controls, list(started))
        done: list[int] = []
        for control in controls:
            conductor = started[control.run_id].conductor
            match control.action:
                case "cancel":
                    conductor.cancel()
                    continue  # it stays wanted until the run has ended
                case "finish_now":
                    conductor.finish_now()
                case "steer":
                    conductor.steer(control.number, control.message)
                case "answer":
                    conductor.answer(control.message)
            await conductor.settle()
            done.append(control.number)
        if done:
            await anyio.to_thread.run_sync(self._store.done, done)

    async def _execute(self, row: RunRow) -> None:
        """One run. Whatever goes wrong in it ends this run, and no other."""
        run_id = row.run_id
        directory = RunDirectory(self._home.runs / run_id)

        def started(handle: RunHandle) -> None:
            self._active[run_id] = handle
            self._news.set()

        try:
            if row.resumes > MAX_RESUMES:
                state = await _break_off(directory, "runner_lost", f"{row.resumes} runners were lost with this run")
            else:
                state = (await execute_run(directory, run_id, environ=self._environ, on_start=started)).state
        except Exception as error:
            logger.exception("run %s broke", run_id)
            state = await _break_off(directory, "internal", f"{type(error).__name__}: {error}")
        await anyio.to_thread.run_sync(self._store.end, run_id, state)
        del self._active[run_id]
        self._news.set()


async def _break_off(directory: RunDirectory, reason: FailureReason, message: str) -> RunState:
    """The run ends as failed, by no fault of its team, in its journal too if that can still be written."""
    snapshot = RunSnapshot()
    with suppress(MassgenError, OSError):
        for record in JournalReader(directory.events).read():
            snapshot.apply(record)
        if snapshot.state not in TERMINAL_STATES:
            journal = JournalWriter(directory.events)
            journal.record(RunFailed(reason=reason, message=message))
            await journal.settle()
            journal.close()
    return snapshot.state if snapshot.state in TERMINAL_STATES else "failed"


async def _serve(home: Home, fingerprint: str) -> None:
    """Hold the post for this fingerprint as long as there is work; leave it only when the queue is certainly empty."""
    post = Post(home, fingerprint)
    store = Store(home.database)
    with post.hold() as held:
        if not held:
            return  # somebody else does the work
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_leave_on_signal, signals, tasks.cancel_scope)
                while True:
                    with post.listen() as listening:
                        await Runner(home, store, fingerprint, os.environ).work(listening)
                    # Wakers are refused from here on and start a successor; what came before that is in the queue.
                    if not await anyio.to_thread.run_sync(store.waiting, fingerprint):
                        break
                tasks.cancel_scope.cancel()
    store.close()


async def _leave_on_signal(signals: AsyncIterator[signal.Signals], scope: anyio.CancelScope) -> None:
    async for _ in signals:
        scope.cancel()


def main() -> None:
    os.umask(0o077)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    anyio.run(_serve, find_home(os.environ), sys.argv[1])


if __name__ == "__main__":
    main()
