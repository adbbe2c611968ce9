"""Who works on runs, and how they hear that there is something to do."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from massgen_mcp.runs.engine.files import RunFiles
from massgen_mcp.runs.engine.rows import RunRow


class NewsHost(Protocol):
    """How a process that executes runs tells those who wait for one that there is something new: not what it is, which
    stands in the store and the event log.
    """

    async def serve(self) -> None:
        """Let followers attach, until it is cancelled. Where that is impossible it returns, and nobody is told."""

    def tell(self, run_id: str, *, milestone: bool = True) -> None:
        """There is something new of this run. `milestone`: its state or phase may have changed."""

    async def woken(self) -> None:
        """Return as soon as somebody has called `Liveness.announce` for a run of this host since the last time."""


class Follower(Protocol):
    async def changed(self) -> bool:
        """Return as soon as there is news since the last call; the first call returns at once. False: the host has
        gone, and there will be no more.
        """
        ...


class Liveness(Protocol):
    """Who works now: per fingerprint of credentials at most one runner, or the workers of a pool."""

    def runner_alive(self, fingerprint: str) -> bool: ...

    def wake(self, fingerprint: str) -> bool:
        """Let the runner look at its queue; False if there is none that listens."""
        ...

    def ensure_runner(self, fingerprint: str, environ: Mapping[str, str]) -> None:
        """Make sure that a runner looks at the queue; a new one gets `environ`. The queued run must be stored already.

        Raises `MassgenError` store_unavailable.
        """

    def foreground_alive(self, run: RunFiles) -> bool:
        """Whether a process that is no runner executes the run."""
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
