"""Read-only copies of a directory: what an answer's files were when it was given.

Everything that is no regular file is left out and noted; nothing is followed, nothing blocks, and a directory too large
for the limits gives a smaller copy that says so.
"""

import io
import os
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

from massgen_mcp.workspace import openat
from massgen_mcp.workspace.guard import Choose, DirectoryListing, Entry, PathRefused, Root, shown

_DIRECTORY_MODE = 0o555
_FILE_MODE = 0o444
_CHUNK = 1024 * 1024
_MAX_NOTES = 100


@dataclass(frozen=True, slots=True)
class SnapshotLimits:
    """`total_bytes` of content; `entries` counts files, directories and whatever else lies there."""

    total_bytes: int = 256 * 1024 * 1024
    entries: int = 10_000


@dataclass(slots=True)
class SnapshotReport:
    """What was copied. `notes` says what was left out and why, the first hundred of `left_out` things.

    `complete` is False when a limit was met; links and special files left out do not count against it.
    """

    files: int = 0
    total_bytes: int = 0
    left_out: int = 0
    complete: bool = True
    notes: list[str] = field(default_factory=list[str])

    def leave_out(self, note: str) -> None:
        self.left_out += 1
        if len(self.notes) < _MAX_NOTES:
            self.notes.append(note)


DEFAULT_LIMITS = SnapshotLimits()


def take_snapshot(
    source: Root | Path,
    target: Path,
    *,
    limits: SnapshotLimits = DEFAULT_LIMITS,
    without: Collection[str] = (),
    fill: Callable[[Path], None] | None = None,
) -> SnapshotReport:
    """Copy the regular files below `source` to the new directory `target`; files become 0444, directories 0555.

    `without`: names right below `source` that are left out. `fill` puts into the copy what belongs there besides.
    `target` appears complete or not at all. Raises `FileExistsError` if it is there already, `PathRefused` if `source`
    cannot be read, `OSError` if `target` cannot be written.
    """
    if isinstance(source, Path):
        with Root.open(source, "") as root:
            return take_snapshot(root, target, limits=limits, without=without, fill=fill)
    if os.path.lexists(target):
        raise FileExistsError(f"the snapshot {target.name} is there already")
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    partial.mkdir(mode=0o700)
    try:
        with openat.closing(os.open(partial, openat.DIRECTORY_FLAGS)) as into:
            report = _copy(source, into, limits, without)
        if fill is not None:
            fill(partial)
            _make_read_only(partial)
        partial.rename(target)
    except BaseException:
        remove_tree(partial)
        raise
    target.chmod(_DIRECTORY_MODE)
    return report


def remove_tree(path: Path) -> None:
    """Remove a file or directory tree, read-only parts and links included, following none. Missing is fine."""
    if not os.path.lexists(path):
        return
    with openat.closing(os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as parent:
        openat.remove(parent, path.name)


def _make_read_only(directory: Path) -> None:
    """All below a directory that nobody else works in; the directory itself stays as it is."""
    for parent, directories, files in os.walk(directory, topdown=False):
        for name in files:
            Path(parent, name).chmod(_FILE_MODE)
        for name in directories:
            Path(parent, name).chmod(_DIRECTORY_MODE)


def _leaving_out(names: Collection[str]) -> Choose:
    def chosen(directory: str, found: DirectoryListing) -> DirectoryListing:
        entries = tuple(entry for entry in found.entries if directory or entry.path not in names)
        return replace(found, entries=entries)

    return chosen


def _copy(source: Root, into: int, limits: SnapshotLimits, without: Collection[str]) -> SnapshotReport:
    """Copy below the directory descriptor `into`: from there every path that could be listed is short enough."""
    found = source.walk(".", limits.entries, _leaving_out(without))
    tally = SnapshotReport()
    directories: list[str] = []
    for entry in found.entries:
        match entry.kind:
            case "directory":
                os.mkdir(entry.path, 0o700, dir_fd=into)
                directories.append(entry.path)
            case "file":
                _copy_file(source, entry, into, tally, limits)
            case "link":
                tally.leave_out(f"{shown(entry.path)}: symbolic link")
            case "other":
                tally.leave_out(f"{shown(entry.path)}: not a regular file")
    for path in found.passed_over:
        tally.leave_out(f"{path}: unusable name or not readable")
    if found.hidden:
        tally.leave_out(f"{found.hidden} hidden, as they commonly hold secrets")
    if found.cut:
        tally.complete = False
        tally.notes.append(f"more than {limits.entries} entries, the rest was left out")
    for directory in reversed(directories):
        os.chmod(directory, _DIRECTORY_MODE, dir_fd=into)
    return tally


def _copy_file(source: Root, entry: Entry, into: int, tally: SnapshotReport, limits: SnapshotLimits) -> None:
    room = limits.total_bytes - tally.total_bytes
    try:
        file = source.open_file(entry.path)
    except PathRefused as refused:
        tally.leave_out(str(refused))
        return
    with file:
        size = None
        if entry.size <= room:
            size = _copy_content(file.fileno(), into, entry.path, room)
    if size is None:
        tally.complete = False
        tally.leave_out(f"{shown(entry.path)}: does not fit into {limits.total_bytes} bytes")
        return
    tally.files += 1
    tally.total_bytes += size


def _copy_content(source_fd: int, into: int, path: str, room: int) -> int | None:
    """Copy at most `room` bytes; returns how many, or None, leaving nothing, if the file has grown beyond that."""
    size = 0
    fd = os.open(path, openat.NEW_FILE_FLAGS, 0o600, dir_fd=into)
    with io.FileIO(fd, "wb") as raw, io.BufferedWriter(raw) as copy:
        while chunk := os.read(source_fd, _CHUNK):
            size += len(chunk)
            if size > room:
                break
            copy.write(chunk)
        os.fchmod(fd, _FILE_MODE)
    if size <= room:
        return size
    os.unlink(path, dir_fd=into)
    return None
