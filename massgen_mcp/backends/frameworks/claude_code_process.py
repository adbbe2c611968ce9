"""The Claude Code CLI as a process: the environment it is given and no more, JSON lines both ways, gone when closed."""

import json
import os
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
STDERR_TAIL = 2000


class CliBroken(Exception):
    """The CLI cannot be talked to; the message says why."""


class CliProcess:
    """`command` in `cwd` with `environ` and nothing else; what it says on standard error goes to the file `log`."""

    def __init__(self, command: Sequence[str], *, cwd: Path, environ: Mapping[str, str], log: Path) -> None:
        self._command = list(command)
        self._cwd = cwd
        self._environ = dict(environ)
        self._log = log
        self._process: anyio.abc.Process | None = None

    async def start(self) -> None:
        """Raises `CliBroken`, as everything here but `close`."""
        try:
            with self._log.open("ab") as log, anyio.CancelScope(shield=True):  # half started it could not be ended
                self._process = await anyio.open_process(
                    self._command, stderr=log, cwd=self._cwd, env=self._environ, start_new_session=True
                )
        except OSError as error:
            raise CliBroken(f"cannot start {self._command[0]}: {error.strerror or error}") from error

    async def write(self, message: Mapping[str, Any]) -> None:
        if self._process is None or self._process.stdin is None:
            raise CliBroken("the CLI is not running")
        try:
            await self._process.stdin.send(f"{json.dumps(message)}\n".encode())
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise CliBroken(f"the CLI does not listen any more: {self._last_words()}") from error

    async def messages(self) -> AsyncGenerator[dict[str, Any]]:
        """What it says on standard output, one JSON object per line; other lines are passed over."""
        process = self._process
        if process is None or process.stdout is None:
            raise CliBroken("the CLI is not running")
        pending = b""
        with suppress(anyio.ClosedResourceError):
            async for chunk in process.stdout:
                *lines, pending = (pending + chunk).split(b"\n")
                if len(pending) > MAX_MESSAGE_BYTES:
                    raise CliBroken(f"a message is larger than {MAX_MESSAGE_BYTES} bytes")
                for line in lines:
                    if line.startswith(b"{"):
                        yield _message(line)
        if (code := await process.wait()) != 0:
            raise CliBroken(f"the CLI failed with exit code {code}: {self._last_words()}")

    async def close(self) -> None:
        """Kill the CLI with everything it started. What it may still have to write nobody needs."""
        process, self._process = self._process, None
        if process is None:
            return
        with anyio.CancelScope(shield=True):
            # Its group is still there while it is not waited for, even if it has ended itself.
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            with anyio.move_on_after(5):
                await process.aclose()

    def _last_words(self) -> str:
        with suppress(OSError):
            return self._log.read_bytes()[-STDERR_TAIL:].decode(errors="replace").strip()
        return ""


def _message(line: bytes) -> dict[str, Any]:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CliBroken(f"a message that is not JSON: {error}") from error
