"""Who works on runs, and how they hear that there is something to do."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from massgen_mcp.runs.engine.files import RunFiles


class Waking(Protocol):
    """What a runner hears while it listens."""

    async def woken(self) -> None:
        """Return as soon as somebody has woken the runner since the last call."""
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
