"""Copies of files from one place of an agent to another, such as from another agent's answer into its own workspace.

Nothing is copied over what is there, and nothing if not all of it fits the limits.
"""

from dataclasses import dataclass, replace

from massgen_mcp.workspace.directory import ResolvedPath
from massgen_mcp.workspace.guard import Entry, PathHidden, PathMissing, PathRefused, shown

MAX_BYTES = 64 * 1024 * 1024
MAX_ENTRIES = 10_000


@dataclass(frozen=True, slots=True)
class Copied:
    files: int
    total_bytes: int
    left_out: int
    """Links, special files, and what is hidden."""


def copy(source: ResolvedPath, target: ResolvedPath) -> Copied:
    """Copy a file, or a directory with everything in it, to a place where nothing is. Raises `PathRefused`."""
    first = source.root.stat(source.rel)
    _require_nothing_at(target)
    if first.kind != "directory":
        _copy_file(source, first, target)
        return Copied(1, first.size, 0)
    if source.root is target.root and f"{target.rel}/".startswith(f"{source.rel}/".removeprefix("./")):
        raise PathRefused(f"{shown(target.rel)}: lies in what is to be copied")
    found = source.root.walk(source.rel, MAX_ENTRIES)
    files = [entry for entry in found.entries if entry.kind == "file"]
    total = sum(entry.size for entry in files)
    if found.cut or total > MAX_BYTES:
        raise PathRefused(
            f"{shown(source.rel)}: holds more than {MAX_ENTRIES} entries or {MAX_BYTES} bytes; copy parts of it"
        )
    target.root.make_dirs(target.rel)
    copied = Copied(0, 0, len(found.passed_over) + found.hidden)
    for entry in found.entries:
        below = entry.path if source.rel == "." else entry.path.removeprefix(f"{source.rel}/")
        place = target._replace(rel=f"{target.rel}/{below}")
        if entry.kind == "directory":
            target.root.make_dirs(place.rel)
        elif entry.kind == "file" and _copied(source, entry, place):
            copied = replace(copied, files=copied.files + 1, total_bytes=copied.total_bytes + entry.size)
        else:
            copied = replace(copied, left_out=copied.left_out + 1)
    return copied


def _copied(source: ResolvedPath, entry: Entry, target: ResolvedPath) -> bool:
    """Copy a file unless it is another name of a hidden one."""
    try:
        _copy_file(source, entry, target)
    except PathHidden:
        return False
    return True


def _copy_file(source: ResolvedPath, entry: Entry, target: ResolvedPath) -> None:
    data = source.root.read_bytes(entry.path, MAX_BYTES)
    target.root.write_bytes(target.rel, data, executable=entry.executable)


def _require_nothing_at(target: ResolvedPath) -> None:
    try:
        there = target.root.stat(target.rel)
    except PathMissing:
        return
    inside = ", name a path in it" if there.kind == "directory" else ""
    raise PathRefused(f"{shown(target.rel)}: exists already{inside}")
