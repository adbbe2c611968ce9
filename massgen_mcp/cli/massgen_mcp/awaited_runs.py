"""The runs that a session of a coding agent waits for: one small file each, in a directory of the agent's plugin.

Knows nothing of runs but their ids, so that looking costs next to nothing where nothing is waited for.
"""

import os
import re
import time
from contextlib import suppress
from pathlib import Path

NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
RUN_ID = re.compile(r"run-[a-z2-7]{26}")
WATCHER = "watcher"
FORGOTTEN_SECONDS = 30 * 24 * 3600
"""A session that was not heard of for so long does not come back."""


class AwaitedRuns:
    """Those of one session. Only one process at a time watches them: the one that came last."""

    def __init__(self, directory: Path, session_id: str) -> None:
        """Raises ValueError for a session id that is no name."""
        if not NAME.fullmatch(session_id):
            raise ValueError("a session id has letters, digits and hyphens only")
        self._sessions = directory / "awaited"
        self._directory = self._sessions / session_id

    def add(self, run_id: str) -> None:
        """Wait for this run, too. Raises OSError."""
        if RUN_ID.fullmatch(run_id):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._directory / run_id).touch(mode=0o600)
            self._forget_old_sessions()

    def forget(self, run_id: str) -> bool:
        """Wait for this run no longer. False where nobody waited for it, or another process was faster."""
        if not RUN_ID.fullmatch(run_id):
            return False
        try:
            (self._directory / run_id).unlink()
        except OSError:
            return False
        return True

    def announced(self, run_id: str) -> str:
        """What `tell` kept last; empty where nothing was told. Raises OSError where the run is waited for no longer."""
        return (self._directory / run_id).read_text(encoding="utf-8")

    def tell(self, run_id: str, what: str) -> None:
        """Keep waiting, but do not tell this again. Raises OSError."""
        (self._directory / run_id).write_text(what, encoding="utf-8")

    def run_ids(self) -> list[str]:
        with suppress(OSError):
            return sorted(path.name for path in self._directory.iterdir() if RUN_ID.fullmatch(path.name))
        return []

    def watch(self) -> None:
        """Become the one that watches. Raises OSError."""
        (self._directory / WATCHER).write_text(str(os.getpid()), encoding="utf-8")

    @property
    def is_watched_here(self) -> bool:
        """Whether this process is the one that watches."""
        try:
            return (self._directory / WATCHER).read_text(encoding="utf-8") == str(os.getpid())
        except OSError:
            return False

    def _forget_old_sessions(self) -> None:
        for session in self._sessions.iterdir():
            with suppress(OSError):
                if session.stat().st_mtime < time.time() - FORGOTTEN_SECONDS:
                    for path in session.iterdir():
                        path.unlink()
                    session.rmdir()
