"""Files of a workspace as text."""

import io
from collections.abc import Iterator

from massgen_mcp.tools.base import ToolRefused
from massgen_mcp.workspace.directory import Workspace

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
