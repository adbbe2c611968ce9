"""A program whose input, output and errors are pipes of ours, in a sandbox or without one, and its last words.

Nothing of it is left when the block is that it was started in.
"""

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

from massgen_mcp.sandbox.policy import LevelName, Policy
from massgen_mcp.sandbox.process import SandboxedProcess, spawn

LAST_WORDS_BYTES = 2000
CLOSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class PipedProgram:
    stdin: ByteSendStream
    stdout: ByteReceiveStream
    stderr: ByteReceiveStream
    end: Callable[[], Awaitable[None]]
    """At once."""
    over: Callable[[], Awaitable[str]]
    """Waits for its end, and tells how it was."""


@asynccontextmanager
async def sandboxed(command: Sequence[str], policy: Policy, level: LevelName) -> AsyncGenerator[PipedProgram]:
    """Raises `SandboxFailed`, `OSError`."""
    async with spawn([*command], policy, level, stdin=True, split=True) as process:

        async def over() -> str:
            how = await process.wait()
            return f"exit code {how.code}" if how.reason == "exited" else how.message or how.reason

        yield _piped(process, process.stop, over)


@asynccontextmanager
async def bare(
    command: Sequence[str], cwd: Path, environ: Mapping[str, str], *, patience: float = 0.0
) -> AsyncGenerator[PipedProgram]:
    """With all rights of ours. `patience`: so many seconds it may take to end by itself, when its input is closed and
    it is asked to. Raises `OSError`.
    """
    pipe, process = subprocess.PIPE, None
    with anyio.CancelScope(shield=True):  # half started it could not be ended
        process = await anyio.open_process(
            command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env=environ, start_new_session=True
        )
    if process is None:
        raise OSError("the program was not started")

    async def over() -> str:
        return f"exit code {await process.wait()}"

    try:
        yield _piped(process, partial(_send_signal, process, signal.SIGKILL), over)
    finally:
        with anyio.CancelScope(shield=True):
            await _ended_by_itself(process, patience)
            await _send_signal(process, signal.SIGKILL)
            with anyio.move_on_after(CLOSE_SECONDS):
                await process.aclose()


async def _ended_by_itself(process: Process, patience: float) -> None:
    if patience and process.stdin is not None:
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await process.stdin.aclose()
        with anyio.move_on_after(patience / 4):
            await process.wait()
        await _send_signal(process, signal.SIGTERM)
        with anyio.move_on_after(patience):
            await process.wait()


async def _send_signal(process: Process, number: signal.Signals) -> None:
    """With everything that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _piped(
    process: Process | SandboxedProcess, end: Callable[[], Awaitable[None]], over: Callable[[], Awaitable[str]]
) -> PipedProgram:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise OSError("the program has no pipes")
    return PipedProgram(process.stdin, process.stdout, process.stderr, end, over)


class LastWords:
    """The end of what a program printed to its standard error, as the end of a sentence."""

    def __init__(self) -> None:
        self._data = bytearray()

    async def listen(self, stream: ByteReceiveStream) -> None:
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            while True:
                self._data += await stream.receive()
                del self._data[:-LAST_WORDS_BYTES]

    def __str__(self) -> str:
        text = self._data.decode(errors="replace").strip()
        return f"; its last words: {text}" if text else ""
