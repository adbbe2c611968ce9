"""Where this user's runs, runners and secrets of ours live, and the few settings that come from the environment.

The one module that reads our own environment variables.
"""

import errno
import math
import os
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import platformdirs

from massgen_mcp.errors import FULL, MassgenError, storage_error
from massgen_mcp.file_systems import refuse_network

HOME_VARIABLE = "MASSGEN_MCP_HOME"
STORE_VARIABLE = "MASSGEN_MCP_STORE"
POOL_VARIABLE = "MASSGEN_MCP_POOL"
FILES_VARIABLE = "MASSGEN_MCP_FILES"
GIT_HOSTS_VARIABLE = "MASSGEN_MCP_GIT_HOSTS"
PEOPLE_VARIABLE = "MASSGEN_MCP_PEOPLE"
IDLE_VARIABLE = "MASSGEN_MCP_RUNNER_IDLE_SECONDS"
DEFAULT_IDLE_SECONDS = 60.0
RUNNING_VARIABLE = "MASSGEN_MCP_MAX_RUNNING"
QUEUED_VARIABLE = "MASSGEN_MCP_MAX_QUEUED"
RESULTS_VARIABLE = "MASSGEN_MCP_KEEP_RESULTS_DAYS"
WORKSPACES_VARIABLE = "MASSGEN_MCP_KEEP_WORKSPACES_HOURS"
HTTP_TOKEN_VARIABLE = "MASSGEN_MCP_HTTP_TOKEN"  # noqa: S105 - a variable's name
OAUTH_CLIENT_VARIABLE = "MASSGEN_MCP_OAUTH_CLIENT_ID"
OAUTH_SECRET_VARIABLE = "MASSGEN_MCP_OAUTH_CLIENT_SECRET"  # noqa: S105 - as above
WEBHOOKS_VARIABLE = "MASSGEN_MCP_WEBHOOKS"
WEBHOOK_SECRET_VARIABLE = "MASSGEN_MCP_WEBHOOK_SECRET"  # noqa: S105 - as above

REBUILD = "run `massgen doctor --rebuild` to rebuild the list of runs from their directories"

PARENT_VARIABLE = "MASSGEN_MCP_PARENT"
"""Id of the run inside which a program works; what the program starts is nested in that run."""

MAX_PATH_BYTES = 480
"""Of the state directory: SQLite opens no file whose path has more than 512, the endings that it adds included."""
MAX_NAME_BYTES = 255
"""What file systems take as one name."""

HOUR = 3600.0
DAY = 24 * HOUR


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """How many runs there may be, of all processes together, and for how many seconds after its end a run's files are
    kept. Whoever starts a run, takes one or prunes applies the limits of its own environment.
    """

    running: int = 50
    queued: int = 1_000
    results_seconds: float = 7 * DAY
    workspaces_seconds: float = 1 * DAY


@dataclass(frozen=True, slots=True)
class Home:
    """The state directory of one user. Everything in it is private to the user (0700)."""

    path: Path
    runner_idle_seconds: float = DEFAULT_IDLE_SECONDS
    limits: StoreLimits = StoreLimits()
    shared: bool = False
    """Whether several machines may share it, because rows and events of runs are elsewhere."""

    @property
    def runs(self) -> Path:
        return self.path / "runs"

    @property
    def runners(self) -> Path:
        return self.path / "runners"

    def ensure(self) -> "Home":
        """Make the directories. Raises `MassgenError` store_unavailable, also where other machines would share them."""
        if not self.shared:
            refuse_network(self.path)
        try:
            for directory in (self.path, self.runs, self.runners):
                _make_durably(directory)
        except OSError as error:
            message = f"cannot create {self.path}: {error.strerror}; set {HOME_VARIABLE} to a writable directory"
            raise MassgenError("disk_full" if error.errno in FULL else "store_unavailable", message) from error
        return self

    def secret(self, name: str) -> bytes:
        """A random value that is made on first use and stays the same; kept in a 0600 file.

        Raises `MassgenError` disk_full, store_unavailable.
        """
        try:
            return self._secret(self.path / f"{name}.secret")
        except OSError as error:
            raise storage_error(f"cannot keep {name}.secret", error) from error

    def _secret(self, path: Path) -> bytes:
        if path.exists():
            return self._existing_secret(path)
        with written_beside(path, secrets.token_urlsafe(32).encode()) as fresh:
            with suppress(FileExistsError):  # whoever is first names the value
                os.link(fresh, path)
            sync_directory(path.parent)
        return self._existing_secret(path)

    @staticmethod
    def _existing_secret(path: Path) -> bytes:
        if value := path.read_bytes():
            return value
        raise MassgenError("store_unavailable", f"{path.name} is empty; delete it and start again")


def _make_durably(directory: Path) -> None:
    if not directory.is_dir():
        _make_durably(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)
        sync_directory(directory.parent)


def sync_directory(path: Path) -> None:
    """What was made, renamed or removed in it before this call stays so after a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that does not know this, as some over a network
            raise
    finally:
        os.close(descriptor)


@contextmanager
def written_beside(path: Path, data: bytes, mode: int = 0o600) -> Generator[Path]:
    """A file of a new name beside `path`, whole and on disk, with these permissions. While it is written it is this
    user's alone; after the block it is gone, unless it was renamed.
    """
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        yield fresh
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


def write_durably(path: Path, data: bytes) -> None:
    """The file is whole and on disk, or it is not there."""
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def find_home(environ: Mapping[str, str]) -> Home:
    """The state directory: `MASSGEN_MCP_HOME`, else where the operating system keeps a program's state.

    Raises `MassgenError` invalid_arguments for a variable that is not usable.
    """
    chosen = environ.get(HOME_VARIABLE)
    path = _absolute(chosen) if chosen else find_usual_path(partial(platformdirs.user_state_path, "massgen-mcp"))
    _check_length(path)
    usual = StoreLimits()
    limits = StoreLimits(
        running=int(_number_in(environ, RUNNING_VARIABLE, usual.running, least=1)),
        queued=int(_number_in(environ, QUEUED_VARIABLE, usual.queued)),
        results_seconds=_number_in(environ, RESULTS_VARIABLE, usual.results_seconds / DAY) * DAY,
        workspaces_seconds=_number_in(environ, WORKSPACES_VARIABLE, usual.workspaces_seconds / HOUR) * HOUR,
    )
    return Home(
        path.absolute(),
        _number_in(environ, IDLE_VARIABLE, DEFAULT_IDLE_SECONDS),
        limits,
        shared=bool(environ.get(STORE_VARIABLE)),
    )


def find_usual_path(place: Callable[[], Path]) -> Path:
    """Return one of the usual places of a user. Raises `MassgenError` invalid_arguments where the operating system
    knows no home of this user.
    """
    try:
        return place()
    except RuntimeError:
        message = f"user {os.getuid()} has no home directory; set HOME to a writable directory"
        raise MassgenError("invalid_arguments", message) from None


def find_store_path(environ: Mapping[str, str]) -> str | None:
    """Return the path of the state directory; None where none can be named."""
    try:
        return str(find_home(environ).path)
    except MassgenError:
        return None


def find_hook_mark(run_directory: Path) -> Path:
    """Return the file that says that a hook of the caller's client waits for the end of this run."""
    return run_directory / "awaited-by-hook"


def known_levels(environ: Mapping[str, str]) -> Path:
    """The file that says which levels of the sandbox hold on this machine."""
    return find_home(environ).path / "sandbox.json"


def enclosing_run(environ: Mapping[str, str]) -> str | None:
    """Id of the run inside which a program with this environment works; None: it works in none."""
    return environ.get(PARENT_VARIABLE) or None


def inside_run(environ: Mapping[str, str], run_id: str | None) -> dict[str, str]:
    """The environment of a program that works inside this run; None: in none."""
    others = {name: value for name, value in environ.items() if name != PARENT_VARIABLE}
    return others if run_id is None else {**others, PARENT_VARIABLE: run_id}


def _absolute(chosen: str) -> Path:
    """A relative directory would be another one for each process that looks for its runs."""
    path = Path(chosen)
    if not path.is_absolute():
        raise MassgenError("invalid_arguments", f"{HOME_VARIABLE} must be an absolute path, starting with /")
    return path


def _check_length(path: Path) -> None:
    """A link counts as what it leads to, as SQLite has it."""
    lengths = [len(os.fsencode(one)) for one in (path, os.path.realpath(path))]
    if max(lengths) > MAX_PATH_BYTES or any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in path.parts):
        raise MassgenError(
            "invalid_arguments",
            f"{HOME_VARIABLE} makes the state directory's path too long: use at most {MAX_PATH_BYTES} bytes, "
            f"and at most {MAX_NAME_BYTES} per directory name",
        )


def _number_in(environ: Mapping[str, str], variable: str, default: float, *, least: float = 0) -> float:
    """Raises `MassgenError` invalid_arguments for anything but a finite number that is not below `least`."""
    try:
        value = float(environ.get(variable, default))
    except ValueError:
        value = math.nan
    if not least <= value < math.inf:
        raise MassgenError("invalid_arguments", f"{variable} must be a number, {least:g} or more")
    return value
