"""Trees, commits and indexes in git's own formats, made without starting git: a run makes hundreds of them."""

import hashlib
import os
import re
import secrets
import struct
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NewType

from massgen_mcp.changes.files import TreeFile, TreeFiles, is_git_name, parents
from massgen_mcp.changes.git import GitFailed

TreeId = NewType("TreeId", str)
"""What git calls a tree."""

_DIRECTORY = "40000"
_LONGEST_NAME = 0xFFF
"""An index has no more room for the length of a path; a longer path ends where its zero byte is."""
_QUICKLY_COMPRESSED = 1
_DEEPEST = 600
"""Directories in each other that a tree can have."""
_NO_NAME = re.compile(rb"(?:^|/)\.{0,2}(?:/|\Z)")

_Entries = dict[bytes, "TreeFile | _Entries"]


class Trees:
    """The tree objects of some files, all directories included.

    Where a path leads through a file, the later one of them counts, as in `git update-index --replace`. Raises
    `GitFailed` for a path that git refuses.
    """

    def __init__(self, files: TreeFiles) -> None:
        _refuse_paths(files)
        entries: _Entries = {}
        for path, file in files.items():
            _put(entries, path, file)
        self.objects: dict[TreeId, bytes] = {}
        """By their ids; a directory comes before those that it lies in."""
        self._files: dict[bytes, TreeFile] = {}
        self.root = self._add(entries, b"")

    @property
    def files(self) -> TreeFiles:
        """The files in the order of git."""
        return self._files

    def _add(self, entries: _Entries, above: bytes) -> TreeId:
        parts: list[bytes] = []
        for name, entry in sorted(entries.items(), key=_sort_key):
            if isinstance(entry, TreeFile):
                self._files[above + name] = entry
                parts.append(_encode_entry(entry.mode, name, entry.blob))
            else:
                parts.append(_encode_entry(_DIRECTORY, name, self._add(entry, above + name + b"/")))
        content = b"".join(parts)
        tree = TreeId(compute_id("tree", content))
        self.objects[tree] = content
        return tree


def encode_directories(trees: Mapping[str, TreeId]) -> bytes:
    """Return the content of a tree with each of these as a directory of its name."""
    named = {os.fsencode(name): tree for name, tree in trees.items()}
    return b"".join(
        _encode_entry(_DIRECTORY, name, named[name]) for name in sorted(named, key=lambda name: name + b"/")
    )


def encode_commit(tree: TreeId, parents: tuple[str, ...], author: str, message: str) -> bytes:
    """Return the content of a commit. `author`: name, address and time as git writes them."""
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {author}", f"committer {author}"]
    return "\n".join([*lines, "", message, ""]).encode()


def encode_index(files: TreeFiles) -> bytes:
    """Return an index of these files that knows nothing of a working tree, as `git read-tree` writes it. Raises
    `GitFailed` for paths that git refuses: a tree may come from another machine.
    """
    _refuse_paths(files)
    for path in files:
        if any(above in files for above in parents(path)):
            raise GitFailed(f"a directory is also a file: {ascii(path)[2:-1]}")
    parts = [struct.pack(">4sLL", b"DIRC", 2, len(files))]
    for path in sorted(files):
        file = files[path]
        status = struct.pack(">24xL12x", int(file.mode, 8))
        entry = status + bytes.fromhex(file.blob) + struct.pack(">H", min(len(path), _LONGEST_NAME)) + path
        parts.append(entry + bytes(8 - len(entry) % 8))
    content = b"".join(parts)
    return content + hashlib.sha1(content, usedforsecurity=False).digest()


def compute_id(kind: str, content: bytes) -> str:
    """Return the id by which git names an object of this kind and content."""
    return hashlib.sha1(_encode_head(kind, content) + content, usedforsecurity=False).hexdigest()


def write_object(objects: Path, kind: str, content: bytes) -> str:
    """Write an object to an object store, durably, unless it lies there as a file already. Returns its id."""
    name = compute_id(kind, content)
    place = objects / name[:2] / name[2:]
    if place.exists():
        return name
    place.parent.mkdir(mode=0o700, exist_ok=True)
    partial = place.with_name(f"tmp_obj_{secrets.token_hex(8)}")
    opened = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(zlib.compress(_encode_head(kind, content) + content, _QUICKLY_COMPRESSED))
            file.flush()
            os.fsync(file.fileno())
        partial.rename(place)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
    return name


def _refuse_paths(paths: Iterable[bytes]) -> None:
    """Refuse what git itself would write into, what leads out of a directory, and what lies too deep."""
    for path in paths:
        if path.count(b"/") > _DEEPEST:
            raise GitFailed(f"a path has more than {_DEEPEST} directories: {ascii(path[:100])[2:-1]}...")
        plain = path.isascii() and b"git" not in path.lower()
        if _NO_NAME.search(path) or not (plain or _is_harmless(path)):
            raise GitFailed(f"invalid path: {ascii(path)[2:-1]}")


def _is_harmless(path: bytes) -> bool:
    return not any(is_git_name(os.fsdecode(name)) for name in path.split(b"/"))


def _put(entries: _Entries, path: bytes, file: TreeFile) -> None:
    *above, name = path.split(b"/")
    for one in above:
        below = entries.get(one)
        if not isinstance(below, dict):
            below = entries[one] = {}
        entries = below
    entries[name] = file


def _sort_key(item: tuple[bytes, "TreeFile | _Entries"]) -> bytes:
    """Git sorts a directory as if its name ended in a slash."""
    name, entry = item
    if isinstance(entry, TreeFile):
        return name
    return name + b"/"


def _encode_entry(mode: str, name: bytes, one: str) -> bytes:
    return mode.encode() + b" " + name + b"\0" + bytes.fromhex(one)


def _encode_head(kind: str, content: bytes) -> bytes:
    return f"{kind} {len(content)}\0".encode()
