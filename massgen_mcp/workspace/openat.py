"""Opening, making and removing files below a directory descriptor, never through a symbolic link.

The descriptor level under `guard`: takes relative paths that are already validated, raises plain `OSError`. Must not
know which names are refused, what a workspace is, or how an error is worded for a model.

Two ways of opening have the same contract: the kernel's `openat2`, one call, where Linux offers it; and a walk that
opens one component after the other with O_NOFOLLOW, everywhere else. Neither ever resolves a path twice, so a
component that becomes a symbolic link in between is refused, not followed.
"""

import ctypes
import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TypeAlias

Opener: TypeAlias = Callable[[int, str, int], int]
"""`(directory fd, relative path, open flags) -> fd`. The path has no `..`; "." is the directory itself."""

DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READING_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Of a file that others may have put there: no link is followed, and a pipe is not waited for."""
NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_RENAME_NOREPLACE = 0x01
_NOT_OFFERED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM})
"""What a kernel, a file system or an old container runtime says that does not know a call or its flags."""


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@contextmanager
def closing(fd: int) -> Generator[int, None, None]:
    """Lend a descriptor and close it."""
    try:
        yield fd
    finally:
        os.close(fd)


def open_with_openat2(dir_fd: int, path: str, flags: int) -> int:
    """Open `path` in one kernel call that refuses links and everything outside `dir_fd`. Linux 5.6 or newer."""
    resolve = _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS | _RESOLVE_NO_SYMLINKS
    how = _OpenHow(flags | os.O_CLOEXEC, 0, resolve)
    arguments = (
        ctypes.c_long(_SYS_OPENAT2),
        ctypes.c_int(dir_fd),
        ctypes.c_char_p(os.fsencode(path)),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    while True:
        fd = int(_libc().syscall(*arguments))
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code))


def open_by_walking(dir_fd: int, path: str, flags: int) -> int:
    """Open `path` one component at a time. Portable; the same refusals as `open_with_openat2`."""
    *parents, last = path.split("/")
    here = os.dup(dir_fd)
    try:
        for part in parents:
            below = os.open(part, DIRECTORY_FLAGS, dir_fd=here)
            os.close(here)
            here = below
        return os.open(last, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)


@cache
def best_opener() -> Opener:
    """The kernel's way where it is there and not filtered (old container runtimes refuse it), else the walk."""
    if sys.platform != "linux":
        return open_by_walking
    with closing(os.open(".", DIRECTORY_FLAGS)) as here:
        try:
            os.close(open_with_openat2(here, ".", DIRECTORY_FLAGS))
        except OSError:
            return open_by_walking
    return open_with_openat2


def make_dirs(dir_fd: int, parts: Sequence[str]) -> int:
    """Make the directories `parts` below `dir_fd`, each 0700, where they are missing. Returns the last one's fd."""
    here = os.dup(dir_fd)
    try:
        for part in parts:
            with suppress(FileExistsError):  # whatever is there, the next line refuses all but a real directory
                os.mkdir(part, 0o700, dir_fd=here)
            below = os.open(part, DIRECTORY_FLAGS, dir_fd=here)
            os.close(here)
            here = below
        return os.dup(here)
    finally:
        os.close(here)


def rename_new(dir_fd: int, name: str, new_dir_fd: int, new_name: str) -> None:
    """Rename, without replacing anything: raises `FileExistsError`. In one step where the system can, else a file that
    comes there in the same moment is lost.
    """
    if sys.platform == "linux" and (renameat2 := getattr(_libc(), "renameat2", None)) is not None:
        names = os.fsencode(name), os.fsencode(new_name)
        if renameat2(dir_fd, names[0], new_dir_fd, names[1], ctypes.c_uint(_RENAME_NOREPLACE)) == 0:
            return
        if (code := ctypes.get_errno()) not in _NOT_OFFERED:
            raise OSError(code, os.strerror(code), name, None, new_name)
    with suppress(FileNotFoundError):
        os.stat(new_name, dir_fd=new_dir_fd, follow_symlinks=False)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new_name)
    os.rename(name, new_name, src_dir_fd=dir_fd, dst_dir_fd=new_dir_fd)


def sync_file_system(fd: int) -> None:
    """Whatever was written to the file system of this descriptor is on disk when this returns."""
    if sys.platform == "linux" and (syncfs := getattr(_libc(), "syncfs", None)) is not None:
        if syncfs(fd) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return
    os.sync()


def remove(dir_fd: int, name: str) -> None:
    """Remove the entry `name` of `dir_fd`; a directory goes with everything in it, also when it is read-only.

    Directories found on the way are first moved up to the top, so a tree of any depth needs neither recursion nor more
    than three descriptors. Links are removed, never followed.
    """
    if not stat.S_ISDIR(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=dir_fd)
        return
    with closing(_open_unlocked(dir_fd, name)) as top:
        token = secrets.token_hex(8)
        moved = 0
        while directories := _unlink_files(top):
            for directory in directories:
                with closing(_open_unlocked(top, directory)) as here:
                    for child in _unlink_files(here):
                        os.close(_open_unlocked(here, child))  # moving a directory needs leave to write in it
                        moved += 1
                        os.rename(child, f"{token}-{moved}", src_dir_fd=here, dst_dir_fd=top)
                os.rmdir(directory, dir_fd=top)
    os.rmdir(name, dir_fd=dir_fd)


def _unlink_files(dir_fd: int) -> list[str]:
    """Remove all that is no directory from `dir_fd`; returns the names of the directories."""
    with os.scandir(dir_fd) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_dir in found:
        if not is_dir:
            os.unlink(name, dir_fd=dir_fd)
    return [name for name, is_dir in found if is_dir]


def _open_unlocked(dir_fd: int, name: str) -> int:
    """Open a directory that its owner may list and empty, whatever its mode was."""
    try:
        fd = os.open(name, DIRECTORY_FLAGS, dir_fd=dir_fd)
    except PermissionError:
        _unlock(dir_fd, name)
        fd = os.open(name, DIRECTORY_FLAGS, dir_fd=dir_fd)
    try:
        if os.fstat(fd).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.fchmod(fd, 0o700)
    except OSError:
        os.close(fd)
        raise
    return fd


def _unlock(dir_fd: int, name: str) -> None:
    if sys.platform != "linux":
        os.chmod(name, 0o700, dir_fd=dir_fd, follow_symlinks=False)
        return
    # Linux cannot change a mode without following links, but it can change that of a descriptor's own file.
    with closing(os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)) as fd:
        Path(f"/proc/self/fd/{fd}").chmod(0o700)
