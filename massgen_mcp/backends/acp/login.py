"""The user's own login to an agent CLI: the CLI has a copy of it in its home. A login that the CLI renewed is written
back, and one that another process renewed reaches the copy, so that the user is not logged out.

The CLI can write its home, so no link in it is followed. Blocking.
"""

import fcntl
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from massgen_mcp.config.access.acp_agents import MAX_LOGIN_BYTES

_NOTHING_FOLLOWED = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class LoginCopy:
    """`own` is the user's file, `name` that of the copy below `home`. `known`: a file, out of the CLI's reach, with the
    digest of the login that both had last.
    """

    def __init__(self, own: Path, home: Path, name: str, known: Path) -> None:
        self._own, self._home, self._name, self._known = Path(os.path.realpath(own)), home, name, known

    def begin(self) -> None:
        """Take up what a process renewed that was lost, then have the copy be the user's login. Raises `OSError`."""
        self.exchange()
        own = _read_small(self._own.parent, self._own.name)
        if own is not None:
            write_home_file(self._home, self._name, own)
            self._known.write_text(_hash_login(own))

    def exchange(self) -> None:
        """Bring a login that was renewed on one side to the other. Where both changed, the user's own stays."""
        with suppress(OSError), _lock_directory(self._own.parent) as directory:
            own, copy = _read_small(self._own.parent, self._own.name), self._read_copy()
            known = self._known.read_text() if self._known.exists() else ""
            if own is None or copy is None or not known:
                return
            if _hash_login(own) == known and _hash_login(copy) != known and _is_renewal(own, copy):
                mode = os.stat(self._own.name, dir_fd=directory, follow_symlinks=False).st_mode & 0o777
                _replace(directory, self._own.name, copy, mode)
                self._known.write_text(_hash_login(copy))
            elif _hash_login(own) != known and _hash_login(copy) == known:
                write_home_file(self._home, self._name, own)
                self._known.write_text(_hash_login(own))

    def _read_copy(self) -> bytes | None:
        *above, name = Path(self._name).parts
        with suppress(OSError), _open_home_directory(self._home, above, make=False) as directory:
            return _read_regular(directory, name)
        return None


def write_home_file(home: Path, name: str, content: bytes) -> None:
    """Write a file below a directory that a CLI can write: what is in the way is replaced. Raises `OSError`."""
    *above, last = Path(name).parts
    with _open_home_directory(home, above, make=True) as directory:
        _replace(directory, last, content, 0o600)


@contextmanager
def _open_home_directory(home: Path, above: list[str], *, make: bool) -> Generator[int]:
    """The directory of these components below the home, none of which is a link."""
    flags = os.O_RDONLY | os.O_DIRECTORY | _NOTHING_FOLLOWED
    opened = os.open(home, flags)
    try:
        for part in above:
            if make:
                _make_directory(opened, part)
            below = os.open(part, flags, dir_fd=opened)
            os.close(opened)
            opened = below
        yield opened
    finally:
        os.close(opened)


def _make_directory(above: int, name: str) -> None:
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
            return
        os.unlink(name, dir_fd=above)
    os.mkdir(name, 0o700, dir_fd=above)


def _replace(directory: int, name: str, content: bytes, mode: int) -> None:
    fresh = f".{name}.{secrets.token_hex(8)}"
    opened = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOTHING_FOLLOWED, 0o600, dir_fd=directory)
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.rename(fresh, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        with suppress(OSError):
            os.unlink(fresh, dir_fd=directory)
        raise


@contextmanager
def _lock_directory(place: Path) -> Generator[int]:
    """The directory, which the copies of several agents do not change at the same time."""
    directory = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield directory
    finally:
        os.close(directory)


def _read_small(place: Path, name: str) -> bytes | None:
    with suppress(OSError):
        directory = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return _read_regular(directory, name)
        finally:
            os.close(directory)
    return None


def _read_regular(directory: int, name: str) -> bytes | None:
    """A regular file with one name and of some length, at most `MAX_LOGIN_BYTES`; None for anything else."""
    with suppress(OSError):
        opened = os.open(name, os.O_RDONLY | _NOTHING_FOLLOWED, dir_fd=directory)
        with os.fdopen(opened, "rb") as file:
            found = os.fstat(file.fileno())
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and 0 < found.st_size <= MAX_LOGIN_BYTES:
                content = file.read(MAX_LOGIN_BYTES + 1)
                return content if len(content) == found.st_size else None
    return None


def _is_renewal(own: bytes, copy: bytes) -> bool:
    """Return whether the copy can be a login in place of this one; half a file, or another kind of one, is none."""
    before, after = _list_members(own), _list_members(copy)
    return before is None or bool(after and before & after)


def _list_members(content: bytes) -> frozenset[str] | None:
    try:
        found: object = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return frozenset(cast("dict[str, object]", found)) if isinstance(found, dict) else None


def _hash_login(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
