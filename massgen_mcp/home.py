"""Where this user's runs, runners and secrets of ours live, and the few settings that come from the environment.

The one module that reads our own environment variables.
"""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from massgen_mcp.errors import MassgenError

HOME_VARIABLE = "MASSGEN_MCP_HOME"
IDLE_VARIABLE = "MASSGEN_MCP_RUNNER_IDLE_SECONDS"
DEFAULT_IDLE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Home:
    """The state directory of one user. Everything in it is private to the user (0700)."""

    path: Path
    runner_idle_seconds: float = DEFAULT_IDLE_SECONDS

    @property
    def database(self) -> Path:
        return self.path / "runs.sqlite3"

    @property
    def runs(self) -> Path:
        return self.path / "runs"

    @property
    def runners(self) -> Path:
        return self.path / "runners"

    def ensure(self) -> "Home":
        """Make the directories. Raises `MassgenError` store_unavailable."""
        try:
            for directory in (self.path, self.runs, self.runners):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise MassgenError(
                "store_unavailable",
                f"cannot create {self.path}: {error.strerror}; set {HOME_VARIABLE} to a writable directory",
            ) from error
        return self

    def secret(self, name: str) -> bytes:
        """A random value that is made on first use and stays the same; kept in a 0600 file."""
        path = self.path / f"{name}.secret"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return self._existing_secret(path)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(32))
            file.flush()
            os.fsync(file.fileno())
        return self._existing_secret(path)

    @staticmethod
    def _existing_secret(path: Path) -> bytes:
        for _ in range(1000):  # another process may just be writing it
            if value := path.read_bytes():
                return value
        raise MassgenError("store_unavailable", f"{path.name} is empty; delete it and start again")


def find_home(environ: Mapping[str, str]) -> Home:
    """The state directory: `MASSGEN_MCP_HOME`, else where the operating system keeps a program's state."""
    chosen = environ.get(HOME_VARIABLE)
    path = Path(chosen) if chosen else platformdirs.user_state_path("massgen-mcp")
    try:
        idle = float(environ.get(IDLE_VARIABLE, DEFAULT_IDLE_SECONDS))
    except ValueError:
        raise MassgenError("invalid_arguments", f"{IDLE_VARIABLE} must be a number of seconds") from None
    return Home(path.absolute(), idle)
