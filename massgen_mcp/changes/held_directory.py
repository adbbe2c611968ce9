"""A directory of the person's, held open by its descriptor while files in it are looked at and changed.

No path is resolved twice and no symbolic link is followed, so nothing that others do there meanwhile leads out of it.
Raises plain `OSError`. Must not know what a run or a patch is.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from massgen_mcp.changes.files import EXECUTABLE, LINK, REGULAR, TreeFile, blob_id
from massgen_mcp.workspace import openat

_CHUNK = 1024 * 1024
_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})


class HeldDirectory:
    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._opener = openat.best_opener()

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Generator[Self]:
        """Raises `OSError` where it is no directory, or a link to one."""
        with openat.closing(os.open(path, openat.DIRECTORY_FLAGS)) as fd:
            yield cls(fd)

    @contextmanager
    def _above(self, path: str) -> Generator[tuple[int, str]]:
        """The descriptor of the directory that `path` lies in, and its name there."""
        parent, _, name = path.rpartition("/")
        with self._at(parent or ".") as fd:
            yield fd, name

    @contextmanager
    def _at(self, path: str) -> Generator[int]:
        """The descriptor of a directory. Raises `NotADirectoryError` also for a link, on the way or at its end."""
        try:
            opened = self._opener(self._fd, path, openat.DIRECTORY_FLAGS)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from error
            raise
        with openat.closing(opened) as fd:
            yield fd

    def status(self, path: str) -> os.stat_result | None:
        """None where nothing is, also where something above it is no directory or a link."""
        try:
            with self._above(path) as (directory, name):
                return os.stat(name, dir_fd=directory, follow_symlinks=False)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise

    def holds(self, path: str, wanted: TreeFile) -> bool:
        """Whether exactly this is there."""
        found = self.status(path)
        return found is not None and mode_of(found) == wanted.mode and self._blob(path, wanted.mode) == wanted.blob

    def _blob(self, path: str, mode: str) -> str:
        """What git calls the content of a file or link, which may be too large for the memory."""
        if mode == LINK:
            with self._above(path) as (directory, name):
                return blob_id(os.fsencode(os.readlink(name, dir_fd=directory)))
        with openat.closing(self._opener(self._fd, path, _READING)) as fd:
            content = hashlib.sha1(b"blob %d\0" % os.fstat(fd).st_size, usedforsecurity=False)
            while piece := os.read(fd, _CHUNK):
                content.update(piece)
        return content.hexdigest()

    def move(self, path: str, to: str) -> None:
        """Raises `FileExistsError` if something is there: nothing is ever replaced."""
        with self._above(path) as (source, name), self._above(to) as (target, new_name):
            openat.rename_new(source, name, target, new_name)

    def remove(self, path: str) -> None:
        """A file, or a directory with everything in it. Nothing there is fine."""
        try:
            with self._above(path) as (directory, name):
                openat.remove(directory, name)
        except OSError as error:
            if error.errno not in _ABSENT:
                raise

    def make_directory(self, path: str, permissions: int, by: str) -> None:
        """It appears with its permissions, and with the owner of the directory above. `by`: where it is made first;
        what was left there goes.
        """
        self.remove(by)
        self.make_private_directory(by)
        with self._at(by) as made, self._above(path) as (directory, _):
            _own_as(made, os.fstat(directory))
            os.fchmod(made, permissions)
        self.move(by, path)

    def remove_directory(self, path: str) -> bool:
        """False if it is not empty, or none."""
        try:
            with self._above(path) as (directory, name):
                os.rmdir(name, dir_fd=directory)
        except OSError as error:
            if error.errno in {*_ABSENT, errno.ENOTEMPTY, errno.EEXIST}:
                return False
            raise
        return True

    def entries(self, path: str) -> list[tuple[str, bool]]:
        """The names in a directory, and which of them are directories."""
        with self._at(path) as fd, os.scandir(fd) as found:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]

    def permissions(self, path: str) -> int:
        """Of a directory; "." is this one."""
        with self._at(path) as fd:
            return stat.S_IMODE(os.fstat(fd).st_mode)

    def make_file(self, path: str, permissions: int, like: os.stat_result | None = None) -> int:
        """A new file, open for writing, that belongs to the owner of `like`."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._above(path) as (directory, name):
            fd = os.open(name, flags, 0o600, dir_fd=directory)
        try:
            if like is not None:
                _own_as(fd, like)
            os.fchmod(fd, permissions)
        except OSError:
            os.close(fd)
            raise
        return fd

    def make_private_directory(self, path: str) -> None:
        with self._above(path) as (directory, name):
            os.mkdir(name, 0o700, dir_fd=directory)

    def make_link(self, path: str, target: bytes) -> None:
        with self._above(path) as (directory, name):
            os.symlink(target, name, dir_fd=directory)

    def is_on_same_file_system(self, path: str) -> bool:
        """Whether a directory is on that of this one."""
        with self._at(path) as fd:
            return os.fstat(fd).st_dev == os.fstat(self._fd).st_dev

    def sync(self) -> None:
        """All that was written on its file system stays so after a power cut."""
        openat.sync_file_system(self._fd)


def mode_of(status: os.stat_result) -> str | None:
    """What git calls the kind of this file; None for what no tree holds."""
    if stat.S_ISLNK(status.st_mode):
        return LINK
    if stat.S_ISREG(status.st_mode):
        return EXECUTABLE if status.st_mode & stat.S_IXUSR else REGULAR
    return None


def _own_as(fd: int, like: os.stat_result) -> None:
    """What the superuser makes for a person belongs to the person."""
    if os.geteuid() == 0:
        os.fchown(fd, like.st_uid, like.st_gid)
