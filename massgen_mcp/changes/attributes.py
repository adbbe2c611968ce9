"""What a new file takes over from the one that it replaces, beside its permissions: owner, group, access list and
extended attributes. Where one of these cannot be kept, nothing is replaced.

Privileges are of the content that they were given to: setuid, setgid and capabilities are not taken over, and whoever
writes into a file takes them from it. So a file that has them is not replaced at all.
"""

import errno
import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager

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
    return bool(setting) or CAPABILITIES in _names(source)


def take_over(source: int, target: int, path: str) -> None:
    """Give an open new file what the old one at `path` has. Raises `NotKept`."""
    old = os.fstat(source)
    own_as(target, old)
    new = os.fstat(target)
    if new.st_uid != old.st_uid:
        raise NotKept(errno.EPERM, "belongs to another user, and a changed file would be yours", path)
    if new.st_gid != old.st_gid:
        raise NotKept(errno.EPERM, "belongs to a group that you are not in, and a changed file would not", path)
    for name in _names(source):
        value = None if name in _OF_CONTENT else _value(source, name)
        if value is None or _is_same(name, value, _value(target, name)):
            continue
        try:
            _set(target, name, value)
        except OSError as error:
            message = f"has the attribute {name}, which a changed file cannot be given"
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
        try:
            os.removexattr(directory, HANDED_DOWN)
        except OSError as error:
            if error.errno not in _NONE:
                raise


def own_as(fd: int, like: os.stat_result) -> None:
    """As far as that is allowed: what the superuser makes for a person belongs to the person, and a group may be shared
    by its members. A directory gives its group to what is made in it if it is marked so.
    """
    if os.geteuid() == 0:
        with as_far_as_allowed():
            os.fchown(fd, like.st_uid, like.st_gid)
    elif not stat.S_ISDIR(like.st_mode) or like.st_mode & stat.S_ISGID:
        with as_far_as_allowed():
            os.fchown(fd, -1, like.st_gid)


@contextmanager
def as_far_as_allowed() -> Generator[None]:
    """A superuser of a container may have no right to give files to others, or not know who they are."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.EINVAL}:
            raise


def _is_same(name: str, old: bytes, new: bytes | None) -> bool:
    """Who made a file is the first part of its SELinux label; what may be done with it is in the others."""
    if name == LABEL and new is not None:
        return old.partition(b":")[2] == new.partition(b":")[2]
    return old == new


def _names(fd: int) -> list[str]:
    if sys.platform != "linux":
        return []
    try:
        return os.listxattr(fd)
    except OSError as error:
        if error.errno in _NONE:
            return []
        raise


def _value(fd: int, name: str) -> bytes | None:
    if sys.platform != "linux":
        return None
    try:
        return os.getxattr(fd, name)
    except OSError as error:
        if error.errno in _NONE:
            return None
        raise


def _set(fd: int, name: str, value: bytes) -> None:
    if sys.platform == "linux":
        os.setxattr(fd, name, value)
