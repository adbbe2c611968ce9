"""What a command prints, kept within bounds, and how it ended, in words."""

from collections.abc import Callable
from typing import assert_never

import anyio

from massgen_mcp.sandbox.policy import MIB
from massgen_mcp.sandbox.process import Ended, EndReason, SandboxedProcess

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
        note = f"\n[{left_out} bytes are left out here]\n"
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
    return f"printed more than {MAX_PRINTED_BYTES // MIB} MB, ended" if too_much else _how(ended, limit)


_BEYOND: dict[EndReason, str] = {
    "memory": "it used more memory than it may",
    "processes": "it started more processes than it may",
    "disk": "its files take more room than they may; delete some first",
    "files": "there are more files than there may be; delete some first",
    "hidden": "the file of one of its programs cannot be read, so its memory cannot be counted",
}


def _how(ended: Ended, limit: float) -> str:
    match ended.reason:
        case "exited":
            return f"exit code {ended.code}"
        case "time":
            return f"ended after {limit:g} s, its time limit"
        case "memory" | "processes" | "disk" | "files" | "hidden":
            return f"ended: {_BEYOND[ended.reason]}"
        case "stopped":
            return "stopped"
        case "failed":
            return f"did not run: the sandbox could not start it ({ended.message})"
        case "lost":
            return "ended: the process that kept it was lost"
        case _:
            assert_never(ended.reason)
