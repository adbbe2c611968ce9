"""One command in the sandbox: started, and ended with the block that it was started in, however that is left; what it
prints, kept within bounds; how it ended, in words; and whether it waits for somebody at a terminal.

It has no terminal, and nothing to read on its standard input; most programs end at once for that reason, and some wait
until their time is over.
"""

import json
import math
import re
import socket
import subprocess
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, assert_never

import anyio
import anyio.to_thread
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from massgen_mcp.sandbox import levels
from massgen_mcp.sandbox.network import Network, NetworkFailed
from massgen_mcp.sandbox.policy import LevelName, Policy
from massgen_mcp.sandbox.specification import MIB

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
            raise ValueError("this process has no output pipe")
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
    argv: list[str],
    policy: Policy,
    level: LevelName,
    *,
    stdin: bool = False,
    split: bool = False,
    network: Network | None = None,
) -> AsyncGenerator[SandboxedProcess]:
    """Run `argv` under `policy`. When the block is left, also by a cancellation, nothing of the command is left.

    `stdin`: the command reads what is sent; otherwise its input is empty. `split`: standard error comes apart.
    `network`: what several commands in bubblewrap have together; without it each has one of its own.
    Raises `SandboxFailed` if it cannot be tried; a level that fails later says so in `Ended`.
    """
    if network is None and policy.network and level == "bubblewrap":
        async with (
            open_network(policy.network) as own,
            spawn(argv, policy, level, stdin=stdin, split=split, network=own) as process,
        ):
            yield process
        return
    joined = network.namespaces if network is not None and level == "bubblewrap" else None
    try:
        start = await anyio.to_thread.run_sync(levels.start, level, argv, policy, joined)
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
                    pass_fds=(theirs.fileno(), *(joined or ())),
                    start_new_session=True,
                )
            except OSError as error:
                raise SandboxFailed(f"{level}: {error}") from error
        try:
            await _send_specification(ours, start.specification)
            yield SandboxedProcess(process, ours)
        finally:
            with suppress(OSError):
                ours.shutdown(socket.SHUT_WR)  # the supervisor takes that for our end, and ends everything
            with anyio.CancelScope(shield=True):
                await _over(process)


@asynccontextmanager
async def open_network(endpoints: Sequence[str]) -> AsyncGenerator[Network]:
    """A network that reaches these pairs of host and port, for the commands of the block. Raises `SandboxFailed`."""
    try:
        network = await Network.open(endpoints)
    except (NetworkFailed, OSError) as failed:
        raise SandboxFailed(f"bubblewrap: {failed}") from failed
    try:
        yield network
    finally:
        with anyio.CancelScope(shield=True):
            await network.close()


async def _send_specification(control: socket.socket, specification: bytes) -> None:
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


HEAD_BYTES, TAIL_BYTES = 16 * 1024, 32 * 1024
"""What is kept of the beginning and of the end of what a command prints."""
MAX_PRINTED_BYTES = 64 * 1024 * 1024
"""A command that prints more is ended."""


class Output:
    """What a command printed: its beginning, its end, and how much there was. With `forget` only what is new."""

    def __init__(self, head_bytes: int = HEAD_BYTES) -> None:
        self.total = 0
        self._most = head_bytes
        self._head = bytearray()
        self._tail = bytearray()

    def take(self, data: bytes) -> None:
        self.total += len(data)
        room = self._most - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        del self._tail[: max(0, len(self._tail) - TAIL_BYTES)]

    def forget(self) -> None:
        self.total = 0
        self._head.clear()
        self._tail.clear()

    def ending(self, count: int) -> str:
        """The last of it, at most so many bytes of what is kept."""
        kept = self._tail[-count:] or self._head[-count:]
        return bytes(kept).decode(errors="replace")

    def text(self) -> str:
        left_out = self.total - len(self._head) - len(self._tail)
        if not left_out:
            return bytes(self._head + self._tail).decode(errors="replace")
        note = f"\n[{left_out} bytes omitted]\n"
        return self._head.decode(errors="replace") + note + self._tail.decode(errors="replace")


async def take(process: SandboxedProcess, output: Output, tell: Callable[[], None] = lambda: None) -> bool:
    """Read what the command prints until its last process is gone; True if that was too much."""
    try:
        while True:
            output.take(await process.stdout.receive())
            tell()
            if output.total > MAX_PRINTED_BYTES:
                await process.stop()
                return True
    except (anyio.EndOfStream, anyio.ClosedResourceError):
        return False


def how_ended(ended: Ended, limit: float, *, too_much: bool = False) -> str:
    """`limit`: its time, in seconds; `too_much`: it was ended because it printed too much."""
    return f"ended: it printed more than {MAX_PRINTED_BYTES // MIB} MB" if too_much else _how(ended, limit)


_BEYOND: dict[EndReason, str] = {
    "memory": "it used more memory than allowed",
    "processes": "it started more processes than allowed",
    "disk": "its files take more space than allowed; delete some first",
    "files": "there are more files than allowed; delete some first",
    "hidden": "massgen can't measure the memory of a program that the command started: its file is unreadable",
}


def _how(ended: Ended, limit: float) -> str:
    match ended.reason:
        case "exited":
            return f"exit code {ended.code}"
        case "time":
            return f"timed out after {limit:g} s"
        case "memory" | "processes" | "disk" | "files" | "hidden":
            return f"ended: {_BEYOND[ended.reason]}"
        case "stopped":
            return "stopped"
        case "failed":
            return f"did not run: the sandbox could not start it ({ended.message})"
        case "lost":
            return "ended: massgen lost the process that supervised the command"
        case _:
            assert_never(ended.reason)


LOOKED_AT_BYTES = 8 * 1024
SILENT_SECONDS = 3.0
LOOKS = 20
BUSY_SHARE = 0.25
"""A command whose processes are at work in more of the looks than this does not wait. Our own looking is a part."""
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SCREEN = re.compile(r"\x1b\[\d+;\d+H|\x1b\[\?1049h")
"""Written by programs that draw on a whole screen."""
PROMPT = re.compile(r"[?:>)\]] ?\Z|press (any key|enter|return)|--more--", re.IGNORECASE)
"""At the end of a last line that has no end of line."""
MISSED_TERMINAL = re.compile(
    r"not a (tty|terminal)|/dev/tty|EOF when reading a line|terminal is dumb|inappropriate ioctl|failed tty get"
    r"|error opening terminal|(needs|requires|without) an? .{0,20}(terminal|tty)\b",
    re.IGNORECASE,
)
"""Said by programs that have ended because there is no terminal."""


async def until_it_waits(process: SandboxedProcess, output: Output) -> None:
    """Returns when the command shows a screen or a prompt, prints nothing more, and none of its processes works."""
    while True:
        before = output.total
        busy = 0
        for _ in range(LOOKS):
            await anyio.sleep(SILENT_SECONDS / LOOKS)
            busy += await anyio.to_thread.run_sync(works, process.pid)
        if output.total == before and busy <= LOOKS * BUSY_SHARE and asks_somebody(output.ending(LOOKED_AT_BYTES)):
            return


def asks_somebody(ending: str) -> bool:
    """Whether this end of an output is a screen, or a question that waits for an answer."""
    last = CONTROL.sub("", ending.rpartition("\n")[2])
    return bool(SCREEN.search(ending) or PROMPT.search(last))


def works(supervisor: int) -> bool:
    """Whether a process below this one runs or waits for a disk; True where nobody can tell. Blocking."""
    pending, states = [supervisor], set[str]()
    while pending:
        pid = pending.pop()
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                pending += [int(child) for child in (task / "children").read_text().split()]
                if pid != supervisor:
                    states.add((task / "stat").read_text().rpartition(")")[2].split()[0])
    return not states or bool(states & {"R", "D"})
