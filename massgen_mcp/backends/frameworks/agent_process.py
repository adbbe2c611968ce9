"""An agent CLI as a process, and an agent that talks with one."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from massgen_mcp.backends.wire_values import clean
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.json_rpc import JsonLines, WireBroken
from massgen_mcp.redaction import Redactor
from massgen_mcp.sandbox import SandboxFailed

CANCEL_SECONDS = 2.0
LAST_WORDS_BYTES = 2000
MAX_DETAIL = 500
BROKEN = (WireBroken, SandboxFailed, OSError)
"""What `CliAgent.fault` makes an error of that a run knows."""
L = TypeVar("L", bound=JsonLines)


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


class CliAgent:
    """One agent, whose process may live for several conversations. `name`: as people know it."""

    def __init__(self, name: str, redactor: Redactor) -> None:
        self._name, self._redactor = name, redactor
        self._process = AsyncExitStack()
        self._last_words = bytearray()

    async def _run(self, cli: AbstractAsyncContextManager[Running], speak: Callable[[Running], L]) -> L:
        running = await self._process.enter_async_context(cli)
        lines = speak(running)
        self._last_words.clear()
        words = asyncio.create_task(self._listen(running))
        reading = asyncio.create_task(self._read(lines, running, words))
        self._process.push_async_callback(_ended, reading, words)
        return lines

    async def _stop(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._process.aclose()

    async def _read(self, lines: JsonLines, running: Running, words: asyncio.Task[None]) -> None:
        why = "it ended"
        try:
            await lines.read()
            with anyio.move_on_after(CANCEL_SECONDS):
                await asyncio.shield(words)
        except (WireBroken, BackendError) as error:
            why = str(error)
            await running.end()
        finally:
            lines.end(why)

    async def _listen(self, running: Running) -> None:
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            while True:
                self._last_words += await running.stderr.receive()
                del self._last_words[:-LAST_WORDS_BYTES]

    # -- what goes wrong ----------------------------------------------------------------------------------------------

    def fault(self, error: Exception) -> BackendError:
        if isinstance(error, SandboxFailed | OSError):
            return self._failed("provider_error", f"cannot be started: {error}")
        words = self._last_words.decode(errors="replace").strip()
        last = f"; its last words: {words}" if words else ""
        return self._failed("provider_error", f"broke off: {error}{last}", retryable=True)

    def _failed(self, reason: DropReason, what: str, *, retryable: bool = False) -> BackendError:
        """An error whose message holds no secret and has an end."""
        message = self._redactor.text(clean(f"{self._name} {what}"))
        return BackendError(reason, message[:MAX_DETAIL], retryable=retryable)


async def _ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
