"""A unified diff, file by file. Pure.

A file counts with or without lines: one that is renamed, empty, binary or has another mode is changed as well.
"""

import mimetypes
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_WITHOUT_LINES = re.compile(
    r"(old mode|new mode|new file mode|deleted file mode|similarity index|rename from|copy from) "
)
"""Changes that need no hunk."""
_RENAMED = re.compile(r"(?:rename|copy) to (.+)")
_BINARY = re.compile(r"Binary files .+ differ|GIT binary patch")
_MEDIA = ("image/", "audio/", "video/", "font/")
_TEXT_MEDIA = "image/svg+xml"
_TYPES = mimetypes.MimeTypes()


class IncompleteDiff(ValueError):
    """A part of the diff is missing. The message says which."""


@dataclass
class DiffSection:
    path: str
    start: int
    """The place of its first row in the diff."""
    lines: dict[int, str] = field(default_factory=dict[int, str])
    """The lines of the new side that the diff shows, by their number."""
    hunks: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """The place of each hunk's first row, and of the row after it."""
    is_binary: bool = False
    """Git shows no text of it."""
    is_complete: bool = False
    """Its header is followed by a change."""

    @property
    def is_media(self) -> bool:
        """True if the name is one of an image, sound, video or font."""
        kind = _TYPES.guess_type(self.path)[0] or ""
        return kind.startswith(_MEDIA) and kind != _TEXT_MEDIA


def read_files(rows: Sequence[str]) -> list[DiffSection]:
    """Raises `IncompleteDiff`."""
    files = [*_read_sections(rows)]
    for file in files:
        if not file.is_complete:
            raise IncompleteDiff(f"no changes follow the header of {file.path}")
    return files


def _read_sections(rows: Sequence[str]) -> Iterator[DiffSection]:
    file: DiffSection | None = None
    is_open = False  # after `diff --git`, until `+++` names the file
    place = 0
    while place < len(rows):
        row = rows[place]
        place += 1
        if row.startswith("diff --git "):
            file, is_open = DiffSection(_read_header_path(row), place - 1), True
            yield file
        elif row.startswith("+++ ") and place > 1 and rows[place - 2].startswith("--- "):
            path = _read_path(row, rows[place - 2])
            if file is None or not is_open:
                file = DiffSection(path, place - 2)
                yield file
            file.path, file.is_complete, is_open = path, False, False
        elif file is not None and (hunk := _HUNK.match(row)):
            start, place = place - 1, _read_hunk(rows, place, hunk, file)
            file.hunks.append((start, place))
            file.is_complete = True
        elif file is not None and is_open:
            _read_extended_header(row, file)


def _read_extended_header(row: str, file: DiffSection) -> None:
    if _BINARY.fullmatch(row):
        file.is_binary = file.is_complete = True
    elif renamed := _RENAMED.fullmatch(row):
        file.path, file.is_complete = renamed[1], True
    elif _WITHOUT_LINES.match(row):
        file.is_complete = True


def _read_hunk(rows: Sequence[str], start: int, hunk: re.Match[str], file: DiffSection) -> int:
    """Add the lines of a hunk to its file; return the place of the row after it."""
    old, number, new = int(hunk[1] or 1), int(hunk[2]), int(hunk[3] or 1)
    place = start
    while old > 0 or new > 0:
        row = rows[place] if place < len(rows) else "end"
        place += 1
        if row.startswith("\\"):
            continue
        if row[:1] not in (" ", "+", "-", ""):
            break
        old -= row[:1] != "+"
        if row[:1] != "-":
            file.lines[number] = row[1:]
            number, new = number + 1, new - 1
    if old or new:
        raise IncompleteDiff(
            f"it ends in the middle of a hunk of {file.path}: the number of lines doesn't match {hunk[0]}"
        )
    return place


def _read_path(new: str, old: str) -> str:
    if new == "+++ /dev/null":
        return _strip_side(old.removeprefix("--- "))
    return _strip_side(new.removeprefix("+++ "))


def _read_header_path(row: str) -> str:
    """Return the path of a file that keeps its name; of others a later row has it."""
    names = row.removeprefix("diff --git ")
    return _strip_side(names[len(names) // 2 + 1 :])


def _strip_side(path: str) -> str:
    return re.sub("^[ab]/", "", path.partition("\t")[0])
