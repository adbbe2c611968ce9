"""A directory of the person's, held open by its descriptor while files in it are looked at and changed.

No path is resolved twice and no symbolic link is followed, so nothing that others do there meanwhile leads out of it.
Raises plain `OSError`. Must not know what a run or a patch is.
"""

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Collection, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from massgen_mcp.changes.files import EXECUTABLE, LINK, REGULAR, TreeFile, blob_id
from massgen_mcp.workspace import openat

_CHUNK = 1024 * 1024
_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
_IN_USE = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY})
_NOT_ALLOWED = frozenset({errno.EPERM, errno.EINVAL})
"""A superuser of a container may have no right to give files to others, or not know who they are."""


@contextmanager
def suppress_codes(codes: Collection[int]) -> Generator[None]:
    """Suppress an error of the operating system that has one of these codes."""
    try:
        yield
    except OSError as error:
        if error.errno not in codes:
            raise


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
        with suppress_codes(_ABSENT), self._above(path) as (directory, name):
            return os.stat(name, dir_fd=directory, follow_symlinks=False)
        return None

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
        """Raises `FileExistsError` if something is there: nothing is ever replaced. An error names the whole `path`."""
        try:
            with self._above(path) as (source, name), self._above(to) as (target, new_name):
                openat.rename_new(source, name, target, new_name)
        except OSError as error:
            error.filename, error.filename2 = path, to
            raise

    def remove(self, path: str) -> None:
        """A file, or a directory with everything in it. Nothing there is fine."""
        with suppress_codes(_ABSENT), self._above(path) as (directory, name):
            openat.remove(directory, name)

    def make_directory(self, path: str, by: str) -> None:
        """It appears with the permissions, the owner and the access list that the directory above gives it. `by`: where
        it is made first; what was left there goes.
        """
        self.remove(by)
        self.make_private_directory(by)
        with self._at(by) as made, self._above(path) as (directory, _):
            inherit(directory, made)
            os.fchmod(made, stat.S_IMODE(os.fstat(directory).st_mode))
        self.move(by, path)

    def remove_directory(self, path: str) -> None:
        """Unless it is not empty, in use, or none."""
        with suppress_codes(_ABSENT | _IN_USE), self._above(path) as (directory, name):
            os.rmdir(name, dir_fd=directory)

    def entries(self, path: str) -> list[tuple[str, bool]]:
        """The names in a directory, and which of them are directories."""
        with self._at(path) as fd, os.scandir(fd) as found:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]

    def not_kept(self, path: str) -> str:
        """What of a file a new one in its place cannot have; empty if it can have all, or if that shows only when it is
        made. Tried on a file without a name.
        """
        with openat.closing(self._opener(self._fd, path, _READING)) as source:
            if privileges(source):
                return (
                    "has special permissions (setuid, setgid, capabilities) that massgen doesn't set on changed files"
                )
            if (unnamed := getattr(os, "O_TMPFILE", None)) is None:
                return ""
            try:
                tried = os.open(".", unnamed | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=self._fd)
            except OSError:  # this file system has no such files
                return ""
            with openat.closing(tried):
                try:
                    take_over(source, tried, path)
                except NotKept as lost:
                    return lost.strerror or ""
        return ""

    def make_file(self, path: str, permissions: int, like: str | None = None) -> int:
        """A new file, open for writing. `like`: the file that it will replace, whose owner, access list and attributes
        it takes over, or the directory that it will come into. Raises `NotKept`.
        """
        with self._above(path) as (directory, name):
            fd = os.open(name, openat.NEW_FILE_FLAGS, 0o600, dir_fd=directory)
        try:
            if like is not None:
                with openat.closing(self._opener(self._fd, like, _READING)) as source:
                    if stat.S_ISDIR(os.fstat(source).st_mode):
                        inherit(source, fd)
                    else:
                        take_over(source, fd, like)
            os.fchmod(fd, permissions)
        except OSError:
            os.close(fd)
            raise
        return fd

    def make_private_directory(self, path: str) -> None:
        """What is made in it takes nothing over from the directories above."""
        with self._above(path) as (directory, name):
            os.mkdir(name, 0o700, dir_fd=directory)
        with self._at(path) as made:
            hand_nothing_down(made)

    def make_link(self, path: str, target: bytes, like: str) -> None:
        """It belongs to the owner of what lies at `like`, if that can be."""
        found = self.status(like)
        with self._above(path) as (directory, name):
            os.symlink(target, name, dir_fd=directory)
            if os.geteuid() == 0 and found is not None:
                with suppress_codes(_NOT_ALLOWED):
                    os.chown(name, found.st_uid, found.st_gid, dir_fd=directory, follow_symlinks=False)

    def is_directory(self, path: str) -> bool:
        """And no link to one."""
        found = self.status(path)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def permissions(self, path: str) -> int:
        """Of a directory; "." is this one."""
        with self._at(path) as fd:
            return stat.S_IMODE(os.fstat(fd).st_mode)

    def is_on_same_file_system(self, path: str) -> bool:
        """Whether a directory is on that of this one."""
        with self._at(path) as fd:
            return os.fstat(fd).st_dev == os.fstat(self._fd).st_dev

    def is_mounted(self, path: str) -> bool:
        """Whether a file or directory is, or is below, a mount that this directory is not: nothing can be moved there
        from here, nor from there.
        """
        with openat.closing(self._opener(self._fd, path, getattr(os, "O_PATH", _READING) | os.O_NOFOLLOW)) as fd:
            return _mount(fd) != _mount(self._fd)

    def is_on_read_only_file_system(self, path: str) -> bool:
        """That of a directory."""
        with self._at(path) as fd:
            return bool(os.fstatvfs(fd).f_flag & os.ST_RDONLY)

    def sync(self) -> None:
        """All that was written on its file system stays so after a power cut."""
        openat.sync_file_system(self._fd)


def _mount(fd: int) -> str:
    """Which mount a descriptor is of, where the system tells."""
    try:
        lines = Path(f"/proc/self/fdinfo/{fd}").read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith("mnt_id:")), "")


def mode_of(status: os.stat_result) -> str | None:
    """What git calls the kind of this file; None for what no tree holds."""
    if stat.S_ISLNK(status.st_mode):
        return LINK
    if stat.S_ISREG(status.st_mode):
        return EXECUTABLE if status.st_mode & stat.S_IXUSR else REGULAR
    return None


# ---------------------------------------------------------------------------------------------------------------------
# What a new file takes over from the one that it replaces, beside its permissions: owner, group, access list and
# extended attributes. Where one of these cannot be kept, nothing is replaced.
# Privileges are of the content that they were given to: setuid, setgid and capabilities are not taken over, and
# whoever writes into a file takes them from it. So a file that has them is not replaced at all.


ACCESS_LIST = "system.posix_acl_access"
HANDED_DOWN = "system.posix_acl_default"
"""Of a directory: the access list of what is made in it."""
CAPABILITIES = "security.capability"
LABEL = "security.selinux"
_OF_CONTENT = frozenset({CAPABILITIES, "security.ima", "security.evm"})
_NONE = frozenset({errno.ENODATA, errno.ENOTSUP, errno.ENOSYS})


class NotKept(OSError):
    """A new file cannot have what the one in its place has. `strerror` says what, to complete "PATH …"."""


def privileges(source: int) -> bool:
    """Whether programs run with the rights of others from an open file."""
    setting = os.fstat(source).st_mode & (stat.S_ISUID | stat.S_ISGID)
    return bool(setting) or CAPABILITIES in _attribute_names(source)


def take_over(source: int, target: int, path: str) -> None:
    """Give an open new file what the old one at `path` has. Raises `NotKept`."""
    old = os.fstat(source)
    own_as(target, old)
    new = os.fstat(target)
    if new.st_uid != old.st_uid:
        raise NotKept(errno.EPERM, "belongs to another user, but a changed file would belong to you", path)
    if new.st_gid != old.st_gid:
        raise NotKept(
            errno.EPERM, "belongs to a group that you aren't in, so a changed file would lose the group", path
        )
    for name in _attribute_names(source):
        value = None if name in _OF_CONTENT else _value(source, name)
        if value is None or _is_same(name, value, _value(target, name)):
            continue
        try:
            _set(target, name, value)
        except OSError as error:
            message = f"has the attribute {name}, which massgen can't set on a changed file"
            raise NotKept(error.errno, message, path) from error


def inherit(directory: int, target: int) -> None:
    """Give an open new file or directory what it would have if it had been made in this directory."""
    above = os.fstat(directory)
    own_as(target, above)
    handed_down = _value(directory, HANDED_DOWN)
    if handed_down is None:
        return
    names = (ACCESS_LIST, HANDED_DOWN) if stat.S_ISDIR(os.fstat(target).st_mode) else (ACCESS_LIST,)
    for name in names:
        _set(target, name, handed_down)


def hand_nothing_down(directory: int) -> None:
    """What is made in this directory has no access list from it."""
    if sys.platform == "linux":
        with suppress_codes(_NONE):
            os.removexattr(directory, HANDED_DOWN)


def own_as(fd: int, like: os.stat_result) -> None:
    """As far as that is allowed: what the superuser makes for a person belongs to the person, and a group may be shared
    by its members. A directory gives its group to what is made in it if it is marked so.
    """
    if os.geteuid() == 0:
        with suppress_codes(_NOT_ALLOWED):
            os.fchown(fd, like.st_uid, like.st_gid)
    elif not stat.S_ISDIR(like.st_mode) or like.st_mode & stat.S_ISGID:
        with suppress_codes(_NOT_ALLOWED):
            os.fchown(fd, -1, like.st_gid)


def _is_same(name: str, old: bytes, new: bytes | None) -> bool:
    """Who made a file is the first part of its SELinux label; what may be done with it is in the others."""
    if name == LABEL and new is not None:
        return old.partition(b":")[2] == new.partition(b":")[2]
    return old == new


def _attribute_names(fd: int) -> list[str]:
    if sys.platform == "linux":
        with suppress_codes(_NONE):
            return os.listxattr(fd)
    return []


def _value(fd: int, name: str) -> bytes | None:
    if sys.platform == "linux":
        with suppress_codes(_NONE):
            return os.getxattr(fd, name)
    return None


def _set(fd: int, name: str, value: bytes) -> None:
    if sys.platform == "linux":
        os.setxattr(fd, name, value)
