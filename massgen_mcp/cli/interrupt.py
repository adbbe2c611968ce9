"""Ctrl-C while a command is still being loaded: it leaves at once, and says nothing. Imports nothing of ours."""

import os
import signal
from types import FrameType


def leave_on_interrupt(code: int) -> None:
    """From now on Ctrl-C ends the process with this exit code."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        os._exit(code)

    signal.signal(signal.SIGINT, leave)


def raise_on_interrupt() -> None:
    """From now on Ctrl-C is a `KeyboardInterrupt` again, for which there is an order of leaving."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
