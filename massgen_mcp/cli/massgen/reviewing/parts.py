"""A change in parts that a model's window holds. Pure.

A part is a diff of its own: each file has its header, and a hunk that is too long is split into several.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from massgen_mcp.cli.massgen.reviewing.change import ReviewedChange

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_HEADER = 40
"""Characters of a hunk's header at most, as it is written here."""


def split_change(change: ReviewedChange, most: int) -> list[ReviewedChange]:
    """Split a change into parts of at most `most` characters each, but for lines and headers that are longer."""
    diffs = [""]
    for piece in _list_pieces(change, most):
        if diffs[-1] and len(diffs[-1]) + len(piece) > most:
            diffs.append("")
        diffs[-1] += piece
    return [replace(change, diff=diff) for diff in diffs]


def _list_pieces(change: ReviewedChange, most: int) -> Iterator[str]:
    """List the files of a change, and those that are too long hunk by hunk."""
    rows = change.rows
    starts = [0, *(file.start for file in change.files[1:])]
    for file, start, end in zip(change.files, starts, [*starts[1:], len(rows)], strict=True):
        text = _join(rows[start:end])
        if len(text) <= most or not file.hunks:
            yield text
            continue
        header = _join(rows[start : file.hunks[0][0]])
        for first, after in file.hunks:
            for hunk in _split_hunk(rows[first:after], most - len(header)):
                yield header + hunk


def _split_hunk(rows: Sequence[str], most: int) -> Iterator[str]:
    old, new = (int(number) for number in _HUNK.findall(rows[0])[0])
    lines: list[str] = []
    size = _HEADER
    for row in rows[1:]:
        if lines and size + len(row) + 1 > most and not row.startswith("\\"):
            yield _write_hunk(lines, old, new)
            old += _count_lines(lines, "+")
            new += _count_lines(lines, "-")
            lines, size = [], _HEADER
        lines.append(row)
        size += len(row) + 1
    yield _write_hunk(lines, old, new)


def _write_hunk(lines: Sequence[str], old: int, new: int) -> str:
    return _join([f"@@ -{old},{_count_lines(lines, '+')} +{new},{_count_lines(lines, '-')} @@", *lines])


def _count_lines(lines: Sequence[str], other_side: str) -> int:
    """Return how many of a hunk's lines are on one side: those without the sign of the other side."""
    return sum(not line.startswith((other_side, "\\")) for line in lines)


def _join(rows: Sequence[str]) -> str:
    return "".join(f"{row}\n" for row in rows)
