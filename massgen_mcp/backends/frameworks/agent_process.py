"""An agent CLI as a process, and messages with one: a line of JSON for each. Knows nothing of what they mean."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_STRAY_LINES = 100
"""Lines that are no messages, as of a program that warns on its output."""


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


class WireBroken(Exception):
    """The conversation cannot go on; the message says why."""


class JsonLines:
    """`hear` is told of each message. `read` has to be running."""

    def __init__(self, running: Running) -> None:
        self._stdin, self._stdout = running.stdin, running.stdout
        self._sending = asyncio.Lock()
        self.broken: str | None = None

    async def hear(self, message: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def end(self, why: str) -> None:
        """The other side says nothing more."""
        self.broken = self.broken or why

    async def send(self, message: Mapping[str, Any]) -> None:
        """Raises `WireBroken`."""
        line = f"{json.dumps(message)}\n".encode()
        async with self._sending:
            if self.broken is not None:
                raise WireBroken(self.broken)
            whole = False
            try:
                await self._stdin.send(line)
                whole = True
            except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                raise WireBroken("it does not listen any more") from error
            finally:
                if not whole:  # half a line may be there
                    self.broken = "it does not listen any more"

    async def read(self) -> None:
        """Until the other side says nothing more, or nothing that can be used. Raises `WireBroken` for the latter."""
        pending, stray = bytearray(), 0
        while True:
            try:
                chunk = await self._stdout.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                return
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                pending += line
                if pending.lstrip().startswith(b"{"):
                    await self.hear(_parsed(bytes(pending)))
                elif pending.strip() and (stray := stray + 1) > MAX_STRAY_LINES:
                    raise WireBroken("it writes lines that are no messages")
                pending.clear()
            pending += rest
            if len(pending) > MAX_LINE_BYTES:
                raise WireBroken(f"a message is larger than {MAX_LINE_BYTES} bytes")


def _parsed(line: bytes) -> Mapping[str, Any]:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WireBroken("it says what is not JSON") from error
