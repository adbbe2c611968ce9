"""Files of a workspace as text, and the lines of one that a text which does not occur in it most likely meant."""

import io
from collections.abc import Iterator
from difflib import SequenceMatcher

from massgen_mcp.tools.base import ToolRefused
from massgen_mcp.workspace.directory import Workspace

MAX_LINES = 20
"""Of a text; a longer one is looked for by its first lines."""
MAX_COMPARED = 1_000_000
"""Characters of a file."""
MAX_SHOWN = 2_000
"""Characters of the lines that are shown."""
LEAST_ALIKE = 0.6

MAX_FILE_BYTES = 8 * 1024 * 1024
_BINARY_PROBE = 8192


class NotText(ToolRefused):
    """A file that is there, and holds no text."""


def read_data(workspace: Workspace, path: str) -> bytes:
    """The whole of a file. Raises `PathRefused`."""
    place = workspace.resolve(path)
    return place.root.read_bytes(place.rel, MAX_FILE_BYTES)


def read_text(workspace: Workspace, path: str) -> str:
    """The text of a file. Raises `PathRefused` and `NotText`.

    Text with a few bytes that are not UTF-8 is still text; with a NUL or many of them it is not.
    """
    data = read_data(workspace, path)
    probe = data[:_BINARY_PROBE].decode(errors="replace")
    try:
        text, damaged = data.decode(), False
    except UnicodeDecodeError:
        text, damaged = data.decode(errors="replace"), probe.count("\ufffd") * 10 > len(probe)
    if damaged or "\0" in probe:
        raise NotText(f"{path!a}: is a binary file, not a text file ({len(data)} bytes)")
    return text


def lines_of(text: str) -> Iterator[str]:
    """Lines with their ends, divided at newlines only, as editors and compilers count them; never all at once."""
    return io.StringIO(text, newline="\n")


def near_lines(text: str, wanted: str) -> str:
    """Why `wanted` may not be in `text`, with the lines that are most like it and their numbers; empty if none is."""
    if not wanted.strip():
        return ""
    looked_for = wanted.strip("\n").split("\n")[:MAX_LINES]
    lines = text[:MAX_COMPARED].split("\n")
    if (at := _but_for_blanks(lines, looked_for)) is not None:
        return f"this differs from it only in blanks:\n{_numbered(lines, at, len(looked_for))}"
    if (at := _most_alike(lines, looked_for)) is not None:
        return f"the lines that are most like it:\n{_numbered(lines, at, len(looked_for))}"
    return ""


def _but_for_blanks(lines: list[str], wanted: list[str]) -> int | None:
    """Where the lines begin that differ only in blanks."""
    squeezed, looked_for = ["".join(line.split()) for line in lines], ["".join(line.split()) for line in wanted]
    places = range(len(lines) - len(wanted) + 1)
    return next((at for at in places if _meets(squeezed[at : at + len(wanted)], looked_for)), None)


def _meets(lines: list[str], wanted: list[str]) -> bool:
    """Whether these lines hold the wanted ones, which may begin and end within a line."""
    if len(wanted) == 1:
        return wanted[0] in lines[0]
    ends = lines[0].endswith(wanted[0]) and lines[-1].startswith(wanted[-1])
    return ends and lines[1:-1] == wanted[1:-1]


def _most_alike(lines: list[str], wanted: list[str]) -> int | None:
    """Where the lines begin of which the longest wanted line is most like one."""
    key = max(range(len(wanted)), key=lambda at: len(wanted[at].strip()))
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[key].strip())
    best, found = LEAST_ALIKE, None
    for at, line in enumerate(lines):
        matcher.set_seq1(line.strip()[: 2 * len(wanted[key]) + 1])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and matcher.ratio() > best:
            best, found = matcher.ratio(), at
    return None if found is None else max(0, found - key)


def _numbered(lines: list[str], at: int, count: int) -> str:
    return "\n".join(f"{at + n + 1}: {line}" for n, line in enumerate(lines[at : at + count]))[:MAX_SHOWN]
