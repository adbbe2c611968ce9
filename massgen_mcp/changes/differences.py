"""What differs between two trees, file by file, as git prints it."""

from dataclasses import dataclass
from typing import Literal

from massgen_mcp.changes.files import TreeFile

ChangeKind = Literal["added", "deleted", "modified", "renamed"]
"""`modified`: in its content, its mode or its type. A renamed file may be modified, too."""

_NOTHING = "000000"


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that two trees do not have in common. `added` and `removed` are lines; None for a binary file."""

    path: bytes
    kind: ChangeKind
    before: TreeFile | None
    after: TreeFile | None
    added: int | None
    removed: int | None
    earlier_path: bytes | None = None
    """Where a renamed file was before."""


def parse_changes(printed: bytes) -> tuple[FileChange, ...]:
    """What `git diff-tree -r -z --raw --numstat` printed, sorted by path."""
    raw: list[tuple[bytes, bytes | None, TreeFile | None, TreeFile | None]] = []
    counts: dict[bytes, tuple[int | None, int | None]] = {}
    parts = iter(printed.split(b"\0"))
    for part in parts:
        if part.startswith(b":"):
            before_mode, after_mode, before, after, status = part[1:].decode().split(" ")
            first = next(parts)
            path, earlier = (next(parts), first) if status[0] in "RC" else (first, None)
            raw.append((path, earlier, _file(before_mode, before), _file(after_mode, after)))
        elif part:
            added, removed, path = part.split(b"\t", 2)
            if not path:  # of a renamed file, whose names follow
                next(parts)
                path = next(parts)
            counts[path] = _lines(added), _lines(removed)
    found = [
        FileChange(path, _kind(earlier, before, after), before, after, *counts.get(path, (0, 0)), earlier)
        for path, earlier, before, after in raw
    ]
    return tuple(sorted(found, key=lambda change: change.path))


def _kind(earlier: bytes | None, before: TreeFile | None, after: TreeFile | None) -> ChangeKind:
    if earlier is not None:
        return "renamed"
    if before is None:
        return "added"
    return "deleted" if after is None else "modified"


def _file(mode: str, blob: str) -> TreeFile | None:
    return None if mode == _NOTHING else TreeFile(mode, blob)


def _lines(count: bytes) -> int | None:
    return None if count == b"-" else int(count)
