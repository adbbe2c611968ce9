"""Ctrl-C while a command is still being loaded: it leaves at once, and says nothing. Imports nothing of ours."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType


def leave_on_interrupt(code: int) -> None:
    """From now on Ctrl-C ends the process with this exit code."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        os._exit(code)

    _set(leave)


def raise_on_interrupt() -> None:
    """From now on Ctrl-C is a `KeyboardInterrupt` again, for which there is an order of leaving."""
    _set(signal.default_int_handler)


def _set(handler: Callable[[int, FrameType | None], object]) -> None:
    """Where a program of somebody else runs the command on a thread, its signals stay as that program has them."""
    with suppress(ValueError):
        signal.signal(signal.SIGINT, handler)
