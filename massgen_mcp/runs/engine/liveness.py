"""Who works on runs, and how they hear that there is something to do."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from massgen_mcp.runs.engine.files import RunFiles
from massgen_mcp.runs.engine.rows import RunRow


class Waking(Protocol):
    """What a runner hears while it listens."""

    async def woken(self) -> None:
        """Return as soon as somebody has woken the runner since the last call."""
        ...


class NewsHost(Protocol):
    """How a process that executes runs tells those who wait for one that there is something new: not what it is, which
    stands in the store and the event log.
    """

    async def serve(self) -> None:
        """Let followers attach, until it is cancelled. Where that is impossible it returns, and nobody is told."""
        ...

    def tell(self, run_id: str, *, milestone: bool = True) -> None:
        """There is something new of this run. `milestone`: its state or phase may have changed."""
        ...

    async def woken(self) -> None:
        """Return as soon as somebody has called `Liveness.announce` for a run of this host since the last time."""
        ...


class Follower(Protocol):
    async def changed(self) -> bool:
        """Return as soon as there is news since the last call; the first call returns at once. False: the host has
        gone, and there will be no more.
        """
        ...


class Liveness(Protocol):
    """Who works now, seen without delay: one that ends in whatever way is gone at once. Per fingerprint of credentials
    there is at most one runner.
    """

    def runner_alive(self, fingerprint: str) -> bool: ...

    def runners(self) -> set[str]:
        """Fingerprints that have or had a runner here."""
        ...

    def wake(self, fingerprint: str) -> bool:
        """Let the runner look at its queue; False if there is none that listens."""
        ...

    def ensure_runner(self, fingerprint: str, environ: Mapping[str, str]) -> None:
        """Make sure that a runner looks at the queue; a new one gets `environ`. The queued run must be stored already.

        Raises `MassgenError` store_unavailable.
        """
        ...

    def hold(self, fingerprint: str) -> AbstractContextManager[bool]:
        """Be the runner for as long as the context lasts. A predecessor that is just leaving is waited for; False if
        there is another one.
        """
        ...

    def listen(self, fingerprint: str) -> AbstractContextManager[Waking]:
        """Hear wakers for as long as the context lasts. Only for who holds; wakers are refused before and after."""
        ...

    def foreground_alive(self, run: RunFiles) -> bool:
        """Whether a process that is no runner executes the run."""
        ...

    def hold_foreground(self, run: RunFiles) -> AbstractContextManager[bool]:
        """Execute the run in this process for as long as the context lasts; False if another process does. Raises
        `MassgenError` disk_full or store_unavailable.
        """
        ...

    def runner_news(self, fingerprint: str, environ: Mapping[str, str]) -> NewsHost:
        """For the runner: tells of its own runs and of those that wait for it."""
        ...

    def foreground_news(self, run: RunFiles, run_id: str, environ: Mapping[str, str]) -> NewsHost:
        """For the process that executes this run in the foreground."""
        ...

    def following(
        self, row: RunRow, run: RunFiles, *, milestones: bool = False
    ) -> AbstractContextManager[Follower | None]:
        """Follow a run, for as long as the context lasts, at whoever executes it or should; None if nobody there tells
        news. Who attaches first and then looks misses nothing. `milestones`: hear only of what may have changed the
        run's state or phase.
        """
        ...

    def announce(self, row: RunRow, run: RunFiles) -> None:
        """Somebody else has changed what the store says of a run: whoever executes it and whoever follows it looks."""
        ...
