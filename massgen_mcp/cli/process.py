"""The process of a command: Ctrl-C that leaves at once, while the command is still being loaded and once a run was
cancelled, standard streams that whoever started it has closed, and its garbage. Imports nothing of ours.
"""

import gc
import os
import signal
import sys
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


def open_closed_streams() -> None:
    """Of closed ones (`<&-`, `>&-`) nothing is read, and nothing is written there. Also keeps any file of ours from
    taking the place of one of them.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, number)
            if nothing != number:
                os.close(nothing)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


def loaded() -> None:
    """What is there now stays: the garbage collector, off until now, need not look through modules again and again."""
    gc.freeze()
    gc.enable()
