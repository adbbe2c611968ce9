"""An event loop whose clock stands still while anything can run, and jumps to the next timer when nothing can.

Waits cost a test no time, and times are exact, however busy the machine is. For tests without threads, processes and
sockets: the clock does not wait for those. A module takes it by a fixture `anyio_backend` that returns `VIRTUAL_TIME`.
"""

import asyncio
import selectors
from typing import Any


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_NeverWaits(self))

    def time(self) -> float:
        return self._now

    def pass_time(self, seconds: float) -> None:
        self._now += seconds


class _NeverWaits(selectors.SelectSelector):
    """What the loop waits with: instead of waiting it lets the time pass."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout else timeout)
        if timeout and not ready:
            self._loop.pass_time(timeout)
        return ready


VIRTUAL_TIME: tuple[str, dict[str, Any]] = ("asyncio", {"loop_factory": VirtualTimeLoop})
