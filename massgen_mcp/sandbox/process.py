"""Starts one command in the sandbox, and ends it with the block that it was started in, however that is left."""

import json
import math
import socket
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Literal

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from massgen_mcp.sandbox import levels
from massgen_mcp.sandbox.policy import LevelName, Policy

EndReason = Literal["exited", "time", "memory", "processes", "disk", "files", "hidden", "stopped", "failed", "lost"]
"""Why a command is over: it ended by itself; a bound was exceeded; one of its processes could not be looked at; it was
told to end; its level could not start it; its supervisor was lost.
"""
PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. `code` is its exit code, 128 and its number for a signal; None where we ended it."""

    reason: EndReason
    code: int | None = None
    seconds: float = 0.0
    in_group: bool = False
    """Its memory was bounded by a control group, not only by counting."""
    message: str = ""
    """Why it could not be started, with `failed`."""


class SandboxFailed(Exception):
    """The level could not start the command at all. It did not run, and must not be run in any other way."""


class SandboxedProcess:
    """A command that goes on. `stdin` is there if it was asked for; `stderr` is, unless it goes into `stdout`."""

    def __init__(self, process: Process, control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._ended: Ended | None = None

    @property
    def pid(self) -> int:
        """Of its supervisor: all processes of the command are below it, except those of a container."""
        return self._process.pid

    @property
    def stdin(self) -> ByteSendStream | None:
        return self._process.stdin

    @property
    def stdout(self) -> ByteReceiveStream:
        if self._process.stdout is None:
            raise ValueError("the output of this process is not piped")
        return self._process.stdout

    @property
    def stderr(self) -> ByteReceiveStream | None:
        return self._process.stderr

    async def stop(self) -> None:
        """Ask the command to end, then end it. `wait` tells when it is over."""
        with suppress(OSError):
            self._control.send(b"stop")

    async def wait(self) -> Ended:
        """Until the last process of the command is gone. May be called again, and by several."""
        await self._process.wait()
        if self._ended is None:
            self._ended = _read_end(self._control)
        return self._ended


@asynccontextmanager
async def spawn(
    argv: list[str], policy: Policy, level: LevelName, *, stdin: bool = False, split: bool = False
) -> AsyncGenerator[SandboxedProcess]:
    """Run `argv` under `policy`. When the block is left, also by a cancellation, nothing of the command is left.

    `stdin`: the command reads what is sent; otherwise its input is empty. `split`: standard error comes apart.
    Raises `SandboxFailed` if it cannot be tried; a level that fails later says so in `Ended`.
    """
    try:
        start = levels.start(level, argv, policy)
    except (OSError, ValueError) as error:
        raise SandboxFailed(f"{level}: {error}") from error
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            try:
                process = await anyio.open_process(
                    [*start.supervisor, str(theirs.fileno())],
                    stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE if split else subprocess.STDOUT,
                    cwd="/",
                    env=levels.supervisor_environ(),
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            except OSError as error:
                raise SandboxFailed(f"{level}: {error}") from error
        try:
            await _tell(ours, start.specification)
            yield SandboxedProcess(process, ours)
        finally:
            with suppress(OSError):
                ours.shutdown(socket.SHUT_WR)  # the supervisor takes that for our end, and ends everything
            with anyio.CancelScope(shield=True):
                await _over(process)


async def _tell(control: socket.socket, specification: bytes) -> None:
    """A supervisor that is gone already says so by its end."""
    with suppress(BrokenPipeError, ConnectionResetError):
        await anyio.to_thread.run_sync(control.sendall, specification)


async def _over(process: Process) -> None:
    """Wait for the supervisor, whose end is the end of everything; it is ended only if it hangs."""
    for patience in (PATIENCE_SECONDS, math.inf):
        with anyio.move_on_after(patience):
            await process.wait()
            break
        process.kill()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            with suppress(anyio.EndOfStream, anyio.ClosedResourceError), anyio.move_on_after(PATIENCE_SECONDS):
                while True:  # nobody writes any more; what was not read keeps the pipe open
                    await stream.receive()
            await stream.aclose()
    if process.stdin is not None:
        await process.stdin.aclose()


def _read_end(control: socket.socket) -> Ended:
    data = b""
    with suppress(OSError):
        while chunk := control.recv(1 << 16):
            data += chunk
    if not data:
        return Ended("lost")
    return Ended(**json.loads(data))
