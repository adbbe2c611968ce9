"""A patch as it is shown: the beginning of each file's difference where it is too long, so that a long one hides no
other; with numbers of hunks, and a line above each file that other tools run or obey by themselves (`tool_files`).
"""

import re
from collections.abc import Iterator
from pathlib import Path

from massgen_mcp.changes.tool_files import find_tool

LEAST_BYTES = 200
"""Less of a file is not worth showing; where there are more files, the last ones are left out."""
MARK_BYTES = 60
_BEGIN = b"diff --git "
_CHUNK = 1 << 16
_HEADS = re.compile(rb"^(?:diff --git (.*)|@@ -\S+ \+\S+ @@)", re.MULTILINE)
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def beginnings(patch: Path, most: int) -> bytes:
    """All of it, if it has at most `most` bytes. Else each file has an equal part of them, and leaves to the others
    what it does not need; where one is cut, a line says how much of it is missing. Raises `OSError`.
    """
    with patch.open("rb") as file:
        text = file.read(most + 1)
        if len(text) <= most:
            return text
        file.seek(0)
        starts: list[int] = []
        at, whole = 0, True
        while chunk := file.readline(_CHUNK):
            if whole and chunk.startswith(_BEGIN):
                starts.append(at)
            at += len(chunk)
            whole = chunk.endswith(b"\n")
        ends = [*starts[1:], at]
        lengths = [end - start for start, end in zip(starts, ends, strict=True)][: max(1, most // LEAST_BYTES)]
        parts: list[bytes] = []
        for start, length, share in zip(starts, lengths, shares(lengths, most), strict=False):
            file.seek(start)
            parts.append(_cut(file.read(min(length, share)), length))
    return b"".join(parts) or text[:most]


def shares(lengths: list[int], most: int) -> list[int]:
    """How much of `most` each gets: an equal part, and what the shorter ones leave."""
    given = [0] * len(lengths)
    for left, place in enumerate(sorted(range(len(lengths)), key=lengths.__getitem__)):
        given[place] = min(lengths[place], (most - sum(given)) // (len(lengths) - left))
    return given


def _cut(part: bytes, length: int) -> bytes:
    if len(part) == length:
        return part
    kept = part[: max(0, len(part) - MARK_BYTES)]
    kept = kept[: kept.rfind(b"\n") + 1] or kept
    return kept + b"[%d more bytes of this file are not shown]\n" % (length - len(kept))


def marked(patch: bytes) -> bytes:
    """With the number of each hunk in its file, and what runs a file by itself. `git apply` takes it as it was."""
    number = 0

    def mark(head: re.Match[bytes]) -> bytes:
        nonlocal number
        if head[1] is None:
            number += 1
            return b"%s #%d" % (head[0], number)
        number = 0
        names = _ESCAPED.sub(lambda escaped: bytes([int(escaped[1], 8) & 255]), head[1]).replace(b'"', b"")
        tool = next(filter(None, map(find_tool, _split_names(names.decode(errors="replace")))), None)
        return head[0] if tool is None else b"# The next file runs by itself: %s\n%s" % (tool.encode(), head[0])

    return _HEADS.sub(mark, patch)


def _split_names(both: str) -> Iterator[str]:
    """Yield the names in `a/OLD b/NEW`, which are mostly the same; where they are not, all that they may be."""
    half = len(both) // 2
    if both[1:half] == both[half + 2 :]:
        yield both[2:half]
        return
    for found in re.finditer(" b/", both):
        yield both[2 : found.start()]
        yield both[found.end() :]
