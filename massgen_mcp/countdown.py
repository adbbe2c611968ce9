"""A time limit whose clock can stand still."""

from types import TracebackType
from typing import Self

import anyio


class Countdown:
    """A cancel scope that ends after `seconds` of the time in which its clock runs. Use it as a context manager."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._since: float | None = None
        """When the clock was started; None while it stands."""
        self._scope = anyio.CancelScope()

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

    def go(self) -> None:
        """Let the clock run. Safe to repeat."""
        if self._since is None:
            self._since = anyio.current_time()
            self._scope.deadline = self._since + self._left

    def cancel(self) -> None:
        self._scope.cancel()

    def __enter__(self) -> Self:
        self._scope.__enter__()
        self.go()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return self._scope.__exit__(kind, error, trace)
