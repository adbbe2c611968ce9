"""An agent CLI as a process."""

import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process


@dataclass(frozen=True, slots=True)
class Running:
    stdin: ByteSendStream
    stdout: ByteReceiveStream
    stderr: ByteReceiveStream
    end: Callable[[], Awaitable[None]]
    """At once."""

    @classmethod
    def of(
        cls,
        pipes: tuple[ByteSendStream | None, ByteReceiveStream | None, ByteReceiveStream | None],
        end: Callable[[], Awaitable[None]],
    ) -> "Running":
        """Raises `OSError` where one of standard input, output and error is missing."""
        stdin, stdout, stderr = pipes
        if stdin is None or stdout is None or stderr is None:
            raise OSError("its pipes are missing")
        return cls(stdin, stdout, stderr, end)


@asynccontextmanager
async def bare(command: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> AsyncGenerator[Running]:
    """`command` with all rights of ours; nothing of it is left when the block is. Raises `OSError`."""
    pipe, process = subprocess.PIPE, None
    with anyio.CancelScope(shield=True):  # half started it could not be ended
        process = await anyio.open_process(
            command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env=environ, start_new_session=True
        )
    if process is None:
        raise OSError("it was not started")
    try:
        yield Running.of((process.stdin, process.stdout, process.stderr), partial(_kill, process))
    finally:
        await _kill(process)
        with anyio.move_on_after(5, shield=True):
            await process.aclose()


async def _kill(process: Process) -> None:
    """With everything that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
