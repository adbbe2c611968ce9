"""A time limit whose clock can stand still: when it is told to, and while the process itself stood still.

A process that was frozen (a paused container, a snapshot of its machine) finds all its limits over at once, though
nobody had the time. So the clock is looked at now and then, ever more often towards the end; a look that comes far too
late means that the process was not there, and what it missed is given back.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

import anyio

LATE_SECONDS = 2.0
"""A process that runs is never this late, however busy its machine is."""
LEAST_BEAT = 1.0
BEATS = 8
"""A look comes after this part of what is left: at most so much of a limit is lost by a frozen process."""
MARGIN = 0.001
"""The last look comes so long before the end."""


class Countdown:
    """A cancel scope that ends after `seconds` of the time in which its clock runs. Use it as a context manager."""

    def __init__(self, seconds: float, returned: Callable[[float], None] = lambda _: None) -> None:
        """`returned` hears how many seconds are given back."""
        self.seconds = seconds
        self._left = seconds
        self._returned = returned
        self._since: float | None = None
        """When the clock was started; None while it stands."""
        self._scope = anyio.CancelScope()
        self._look: asyncio.TimerHandle | None = None
        """The next one, while the clock runs."""

    @property
    def left(self) -> float:
        """Seconds, as its clock stands now."""
        return self._left if self._since is None else self._scope.deadline - anyio.current_time()

    @property
    def ended_early(self) -> bool:
        """Whether the block was ended because the time was up, or by `cancel`."""
        return self._scope.cancelled_caught

    def stop(self) -> None:
        """Let the clock stand. Safe to repeat."""
        if self._since is not None:
            self._left -= anyio.current_time() - self._since
            self._since = None
            self._scope.deadline = float("inf")
            self._end_looks()

    def go(self) -> None:
        """Let the clock run. Safe to repeat."""
        if self._since is None:
            self._since = anyio.current_time()
            self._scope.deadline = self._since + self._left
            self._plan_look()

    def cancel(self) -> None:
        self._scope.cancel()

    def __enter__(self) -> Self:
        self._scope.__enter__()
        self.go()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._end_looks()
        return self._scope.__exit__(kind, error, trace)

    def _plan_look(self) -> None:
        now = anyio.current_time()
        left = self._scope.deadline - now
        when = now + min(max(LEAST_BEAT, left / BEATS), left - MARGIN)
        self._look = asyncio.get_running_loop().call_at(when, self._give_back, when) if when > now else None

    def _give_back(self, planned: float) -> None:
        late = anyio.current_time() - planned
        if late <= LATE_SECONDS or self._since is None:
            self._plan_look()
            return
        self._since += late
        self._scope.deadline += late
        self._plan_look()
        self._returned(late)

    def _end_looks(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None
