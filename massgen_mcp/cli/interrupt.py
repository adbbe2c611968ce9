"""Ctrl-C that leaves at once: while a command is still being loaded, and once a run was cancelled. Imports nothing of
ours.
"""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType


def leave_on_interrupt(code: int, saying: str = "") -> None:
    """From now on Ctrl-C ends the process with this exit code, and with this line if there is one."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        with suppress(OSError):
            os.write(2, f"\n{saying}\n".encode() if saying else b"")  # the streams may be in the middle of a line
        os._exit(code)

    _set(leave)


def raise_on_interrupt() -> None:
    """From now on Ctrl-C is a `KeyboardInterrupt` again, for which there is an order of leaving."""
    _set(signal.default_int_handler)


def _set(handler: Callable[[int, FrameType | None], object]) -> None:
    """Where a program of somebody else runs the command on a thread, its signals stay as that program has them."""
    with suppress(ValueError):
        signal.signal(signal.SIGINT, handler)
