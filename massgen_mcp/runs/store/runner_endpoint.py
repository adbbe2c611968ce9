"""How a runner is found, woken, or started on one machine; and how everybody can see who lives.

Per fingerprint there is at most one runner. It holds a file lock that the kernel drops with it (alive: no heartbeat, no
timeout), and reads a FIFO into which a waker writes one byte. A FIFO without a reader refuses the writer, so waking a
runner that is gone, or that has just decided to leave, never goes unnoticed. Whoever starts one holds a second lock and
hands it to the new process, which drops it when it listens: a hundred calls at once start one process, not a hundred. A
process that executes one run itself holds a lock in its directory.
"""

import errno
import os
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Literal

import anyio

from massgen_mcp.errors import MassgenError, storage_error
from massgen_mcp.home import HOME_VARIABLE, IDLE_VARIABLE, Home, inside_run
from massgen_mcp.runs.engine import RunFiles, RunRow
from massgen_mcp.runs.engine.locks import POLL_SECONDS, acquire, is_held
from massgen_mcp.runs.store.news import SocketFollower, SocketNewsHost, following, wake

LEAVING_SECONDS = 10.0
"""For so long a runner is waited for that is just leaving."""
LOOKING_SECONDS = 0.5
"""For so long a lock is waited for that somebody may hold only to see whether the run is alive."""


class WakeUpPipe:
    """What a runner hears while it listens. The reading end of the FIFO: readable when somebody woke us."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def woken(self) -> None:
        """Return as soon as somebody has woken the runner since the last call."""
        await anyio.wait_readable(self._descriptor)
        with suppress(BlockingIOError):
            os.read(self._descriptor, 65536)


class LocalLiveness:
    """Who works now, seen without delay: one that ends in whatever way is gone at once. Per fingerprint of credentials
    there is at most one runner.
    """

    def __init__(self, home: Home) -> None:
        self._home = home

    def _of(self, fingerprint: str, what: Literal["lock", "wake", "starting", "log"]) -> Path:
        return self._home.runners / f"{fingerprint}.{what}"

    def runner_alive(self, fingerprint: str) -> bool:
        return is_held(self._of(fingerprint, "lock"))

    def runners(self) -> set[str]:
        """Fingerprints that have or had a runner here."""
        directory = self._home.runners
        return {path.stem for path in directory.glob("*.lock")} if directory.is_dir() else set()

    def wake(self, fingerprint: str) -> bool:
        """Let the runner look at its queue; False if there is none that listens."""
        try:
            descriptor = os.open(self._of(fingerprint, "wake"), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.ENOENT):
                return False
            raise
        try:
            os.write(descriptor, b".")
        except BlockingIOError:
            return True  # a full pipe wakes, too
        except BrokenPipeError:
            return False
        finally:
            os.close(descriptor)
        return True

    def ensure_runner(self, fingerprint: str, environ: Mapping[str, str]) -> None:
        """Make sure that a runner looks at the queue; a new one gets `environ`. The queued run must be stored already.

        Raises `MassgenError` store_unavailable.

        One that is just starting listens before it looks at the queue, so it finds what was queued before this.
        """
        if self.wake(fingerprint) or (lock := acquire(self._of(fingerprint, "starting"))) is None:
            return
        try:
            if not self.wake(fingerprint):
                _start(self._home, fingerprint, self._of(fingerprint, "log"), environ, lock)
        finally:
            os.close(lock)

    @contextmanager
    def hold(self, fingerprint: str) -> Generator[bool]:
        """Be the runner for as long as the context lasts. A predecessor that is just leaving is waited for; False if
        there is another one.
        """
        deadline = time.monotonic() + LEAVING_SECONDS
        while (descriptor := acquire(self._of(fingerprint, "lock"))) is None:
            if time.monotonic() >= deadline or self.wake(fingerprint):
                yield False
                return
            time.sleep(POLL_SECONDS)
        try:
            yield True
        finally:
            os.close(descriptor)

    @contextmanager
    def listen(self, fingerprint: str) -> Generator[WakeUpPipe]:
        """Hear wakers for as long as the context lasts. Only for who holds; wakers are refused before and after."""
        fifo = self._of(fingerprint, "wake")
        with suppress(FileExistsError):
            os.mkfifo(fifo, 0o600)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # without it, a waker's close reads EOF
        try:
            yield WakeUpPipe(reader)
        finally:
            os.close(writer)
            os.close(reader)

    def foreground_alive(self, run: RunFiles) -> bool:
        """Whether a process that is no runner executes the run."""
        return is_held(_foreground_lock(run))

    @contextmanager
    def hold_foreground(self, run: RunFiles) -> Generator[bool]:
        """Execute the run in this process for as long as the context lasts; False if another process does. Raises
        `MassgenError` disk_full or store_unavailable.
        """
        try:
            lock = acquire(_foreground_lock(run), patience=LOOKING_SECONDS)
        except OSError as error:
            raise storage_error("cannot lock the run directory", error) from error
        try:
            yield lock is not None
        finally:
            if lock is not None:
                os.close(lock)

    def runner_news(self, fingerprint: str, environ: Mapping[str, str]) -> SocketNewsHost:
        """For the runner: tells of its own runs and of those that wait for it."""
        return SocketNewsHost(self._home.runners, fingerprint, environ)

    def foreground_news(self, run: RunFiles, run_id: str, environ: Mapping[str, str]) -> SocketNewsHost:
        """For the process that executes this run in the foreground."""
        return SocketNewsHost(run.path, run_id, environ)

    def following(
        self, row: RunRow, run: RunFiles, *, milestones: bool = False
    ) -> AbstractContextManager[SocketFollower | None]:
        """Follow a run, for as long as the context lasts, at whoever executes it or should; None if nobody there tells
        news. Who attaches first and then looks misses nothing. `milestones`: hear only of what may have changed the
        run's state or phase.
        """
        return following(*self._host(row, run), row.run_id, milestones=milestones)

    def announce(self, row: RunRow, run: RunFiles) -> None:
        """Somebody else has changed what the store says of a run: whoever executes it and whoever follows it looks."""
        wake(*self._host(row, run), row.run_id)

    def _host(self, row: RunRow, run: RunFiles) -> tuple[Path, str]:
        """Where the news of a run are, and under which name."""
        return (run.path, row.run_id) if row.foreground else (self._home.runners, row.fingerprint)


def _foreground_lock(run: RunFiles) -> Path:
    return run.path / ".alive"


def _start(home: Home, fingerprint: str, log: Path, environ: Mapping[str, str], lock: int) -> None:
    """Start a detached runner. It forks away from us at once (so it is nobody's child that must be reaped), into a
    session of its own, and inherits nothing but the environment and the lock that says that it is starting.
    """
    command = [sys.executable, "-P", "-m", "massgen_mcp.runs.host.runner", fingerprint, str(lock)]
    inherited = {
        **inside_run(environ, None),
        HOME_VARIABLE: str(home.path),
        IDLE_VARIABLE: repr(home.runner_idle_seconds),
    }
    try:
        with log.open("ab") as output:
            subprocess.run(  # noqa: S603 - our own module, no shell
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env=inherited,
                pass_fds=(lock,),
                start_new_session=True,
                check=True,
                timeout=30,
            )
    except (OSError, subprocess.SubprocessError) as error:
        raise MassgenError("store_unavailable", f"cannot start a background process: {error}") from error
