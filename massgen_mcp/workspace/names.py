"""Which relative paths are allowed as names, before anything is opened, and the refusals that say why not.

Must not touch the file system: whether a good name leads somewhere safe is decided in `guard`.
"""

import errno
import os
import re
import sys

from massgen_mcp.errors import MassgenError

MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 1023 if sys.platform == "darwin" else 4095
"""What one system call takes, so that whatever can be listed can also be copied."""

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_NOT_THROUGH = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EXDEV, errno.EMLINK})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class PathRefused(Exception):
    """A path that may not or cannot be used. The message names it as the caller knows it, and says why."""


class PathMissing(PathRefused):
    """Nothing is there."""


class PathHidden(PathRefused):
    """Something there commonly holds secrets, or would if it were there."""


def safe_id(value: str, what: str) -> str:
    """Return `value` if it may become part of a path, else raise `MassgenError("unsafe_path")`."""
    if _ID.fullmatch(value):
        return value
    raise MassgenError(
        "unsafe_path",
        f"{what} {shown(value)} is not usable: 1 to 64 of a-z, 0-9, '_' and '-', beginning with a letter or digit",
    )


def parts_of(path: str) -> list[str]:
    """Split a relative path into validated names; "." gives none. Raises `PathRefused`."""
    if not path:
        raise PathRefused("the path is empty")
    if path.startswith("/"):
        raise PathRefused(f"{shown(path)}: absolute paths are refused, use one relative to the workspace")
    if len(path) > MAX_PATH_BYTES:
        raise PathRefused(f"{shown(path)}: longer than {MAX_PATH_BYTES} bytes")
    parts = [part for part in path.split("/") if part not in {"", "."}]
    for part in parts:
        if problem := problem_with(part):
            raise PathRefused(f"{shown(path)}: {problem}")
    if len("/".join(parts).encode()) > MAX_PATH_BYTES:
        raise PathRefused(f"{shown(path)}: longer than {MAX_PATH_BYTES} bytes")
    return parts


def shown(path: str) -> str:
    """`path` for a message: quoted, escaped, at most about 120 characters."""
    return ascii(path if len(path) <= 120 else path[:117] + "...")


def problem_with(name: str) -> str | None:
    """What is wrong with one component of a path, or None."""
    if name == "..":
        return "'..' is refused"
    if "\\" in name:
        return "backslashes are refused, directories are divided by '/'"
    if _CONTROL.search(name):
        return "control characters are refused"
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        return "not valid UTF-8"
    return f"a name is longer than {MAX_NAME_BYTES} bytes" if len(encoded) > MAX_NAME_BYTES else None


def refusal(path: str, error: OSError) -> PathRefused:
    """The refusal that an operating system error on `path` amounts to."""
    if isinstance(error, FileNotFoundError):
        return PathMissing(f"{shown(path)}: no such file or directory")
    if error.errno in _NOT_THROUGH:
        return PathRefused(f"{shown(path)}: leads through a symbolic link or something that is not a directory")
    if error.errno == errno.ENXIO:
        return PathRefused(f"{shown(path)}: is not a regular file")
    return PathRefused(f"{shown(path)}: {os.strerror(error.errno or 0).lower()}")
