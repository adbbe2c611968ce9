"""The file tools of an agent: read, write, edit, list and search inside its workspace.

Everything goes through the workspace's guard; must not open a path itself. Searching is for plain text only: a
model's regular expression can take unlimited time to match, and no limit in this process could stop it.
"""

import fnmatch
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Annotated, Generic, TypeVar

from anyio import to_thread
from pydantic import Field

from massgen_mcp.backends.base import JsonObject, ToolSpec
from massgen_mcp.threads import abandonable
from massgen_mcp.tools.base import Arguments, Text, Tool, ToolRefused, ToolResult, parse_arguments, tool_spec
from massgen_mcp.workspace.directory import Workspace
from massgen_mcp.workspace.guard import Entry, PathRefused

MAX_FILE_BYTES = 8 * 1024 * 1024
MAX_OUTPUT_BYTES = 256 * 1024
MAX_LISTED = 1000
MAX_MATCHES = 200
MAX_LINE_SHOWN = 2000
MAX_SEARCHED_FILES = 10_000
MAX_SEARCHED_BYTES = 64 * 1024 * 1024
_BINARY_PROBE = 8192

MAX_LINE_NUMBER = 1_000_000_000

Positive = Annotated[int, Field(ge=1, le=MAX_LINE_NUMBER)]


class ReadFile(Arguments):
    path: str
    offset: Positive = 1
    limit: Positive = 2000


class WriteFile(Arguments):
    path: str
    content: Text


class EditFile(Arguments):
    path: str
    old: Text
    new: Text
    replace_all: bool = False


class ListFiles(Arguments):
    path: str = "."
    recursive: bool = False


class SearchFiles(Arguments):
    pattern: Text
    path: str = "."
    glob: str = "*"
    ignore_case: bool = False


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


@dataclass(frozen=True, slots=True)
class FileTool(Generic[ArgumentsT]):
    """One file tool: `act` does the blocking work in a thread."""

    spec: ToolSpec
    side_effects: bool
    workspace: Workspace
    kind: type[ArgumentsT]
    act: Callable[[Workspace, ArgumentsT], str]
    keeps_state: bool = False
    foreign: bool = False
    """Whether its results hold what somebody has written."""

    async def run(self, arguments: JsonObject) -> ToolResult:
        try:
            parsed = parse_arguments(self.kind, arguments)
            act = partial(self.act, self.workspace, parsed)
            # A file that never comes must not hold up the run; a change is not left half done behind its back.
            text = await (to_thread.run_sync(act) if self.side_effects else abandonable(act))
            return ToolResult(text, foreign=self.foreign)
        except (PathRefused, ToolRefused) as refused:
            return ToolResult(str(refused), is_error=True)


def file_tools(workspace: Workspace) -> tuple[Tool, ...]:
    """The five file tools over one workspace."""

    def tool(
        name: str,
        description: str,
        kind: type[ArgumentsT],
        act: Callable[[Workspace, ArgumentsT], str],
        *,
        side_effects: bool = False,
    ) -> FileTool[ArgumentsT]:
        spec = tool_spec(name, description, kind)
        return FileTool(spec, side_effects, workspace, kind, act, foreign=not side_effects)

    return (
        tool("read_file", "Read a text file: `limit` lines from line `offset`.", ReadFile, read_file),
        tool("write_file", "Create or replace a text file.", WriteFile, write_file, side_effects=True),
        tool(
            "edit_file",
            "Replace the exact text `old`, which must occur once unless `replace_all`.",
            EditFile,
            edit_file,
            side_effects=True,
        ),
        tool("list_files", "List a directory. peers/ and context/ are read-only.", ListFiles, list_files),
        tool("search_files", "Find lines that contain a plain text (no regex).", SearchFiles, search_files),
    )


def read_file(workspace: Workspace, wanted: ReadFile) -> str:
    text = _decoded(_read(workspace, wanted.path), wanted.path)
    total = text.count("\n") + (not text.endswith("\n") and bool(text))
    first = wanted.offset - 1
    if first and first >= total:
        raise ToolRefused(f"offset {wanted.offset} is beyond the end, the file has {total} lines")
    taken: list[str] = []
    room = MAX_OUTPUT_BYTES
    for line in islice(_lines(text), first, first + wanted.limit):
        size = len(line.encode())
        if size > room:
            if not taken:
                taken.append(line.encode()[:room].decode(errors="ignore"))
            break
        taken.append(line)
        room -= size
    part = "".join(taken)
    if len(part) == len(text):
        return text
    return f"[lines {first + 1}-{first + len(taken)} of {total}]\n{part}"


def write_file(workspace: Workspace, wanted: WriteFile) -> str:
    size = _write(workspace, wanted.path, wanted.content)
    return f"wrote {size} bytes"


def edit_file(workspace: Workspace, wanted: EditFile) -> str:
    if not wanted.old or wanted.old == wanted.new:
        raise ToolRefused("'old' is empty" if not wanted.old else "'old' and 'new' are the same")
    workspace.resolve_writable(wanted.path)
    data = _read(workspace, wanted.path)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ToolRefused("the file is not UTF-8 text, editing would damage it") from None
    count = text.count(wanted.old)
    if not count:
        raise ToolRefused("'old' does not occur in the file; it must match exactly, spaces and line ends included")
    if count > 1 and not wanted.replace_all:
        raise ToolRefused(f"'old' occurs {count} times; give more of its surroundings, or set replace_all")
    if len(text) + count * (len(wanted.new) - len(wanted.old)) > MAX_FILE_BYTES:
        raise ToolRefused(f"the file would become larger than {MAX_FILE_BYTES} bytes")
    _write(workspace, wanted.path, text.replace(wanted.old, wanted.new))
    return f"replaced {count}"


def list_files(workspace: Workspace, wanted: ListFiles) -> str:
    found = workspace.listing(wanted.path, recursive=wanted.recursive, limit=MAX_LISTED)
    lines = [_listed(entry) for entry in found.entries]
    if found.cut:
        lines.append(f"[cut at {MAX_LISTED} entries]")
    if found.passed_over:
        lines.append(f"[{len(found.passed_over)} more with unusable names]")
    if found.hidden:
        lines.append(f"[{found.hidden} more hidden: they commonly hold secrets]")
    return "\n".join(lines) or "[empty]"


def search_files(workspace: Workspace, wanted: SearchFiles) -> str:
    if not wanted.pattern or "\n" in wanted.pattern:
        raise ToolRefused("'pattern' must be a piece of one line")
    needle = wanted.pattern.casefold() if wanted.ignore_case else wanted.pattern
    found = workspace.listing(wanted.path, recursive=True, limit=MAX_SEARCHED_FILES)
    glob = wanted.glob.removeprefix("**/")
    matches: list[str] = []
    budget = MAX_SEARCHED_BYTES
    for entry in found.entries:
        name = entry.path if "/" in glob else entry.path.rpartition("/")[2]
        if entry.kind != "file" or entry.size > MAX_FILE_BYTES or not fnmatch.fnmatchcase(name, glob):
            continue
        budget -= entry.size
        if budget < 0:
            return "\n".join([*matches, "[not all was searched: too much text, narrow `path` or `glob`]"])
        for number, line in _matching(workspace, entry.path, needle, ignore_case=wanted.ignore_case):
            if len(matches) == MAX_MATCHES:
                return "\n".join([*matches, f"[cut at {MAX_MATCHES} matches]"])
            matches.append(f"{entry.path}:{number}: {line}")
    if found.cut:
        matches.append(f"[not all was searched: more than {MAX_SEARCHED_FILES} entries, narrow `path`]")
    return "\n".join(matches) or "[no match]"


def _matching(workspace: Workspace, path: str, needle: str, *, ignore_case: bool) -> Iterator[tuple[int, str]]:
    """The matching lines of one file; none where it is not readable text."""
    try:
        text = _decoded(_read(workspace, path), path)
    except (PathRefused, ToolRefused):
        return
    for number, line in enumerate(_lines(text), 1):
        if needle in (line.casefold() if ignore_case else line):
            yield number, line.rstrip("\r\n")[:MAX_LINE_SHOWN]


def _read(workspace: Workspace, path: str) -> bytes:
    place = workspace.resolve(path)
    return place.root.read_bytes(place.rel, MAX_FILE_BYTES)


def _write(workspace: Workspace, path: str, content: str) -> int:
    data = content.encode()
    if len(data) > MAX_FILE_BYTES:
        raise ToolRefused(f"{len(data)} bytes are too many for one file, the limit is {MAX_FILE_BYTES}")
    place = workspace.resolve_writable(path)
    place.root.write_bytes(place.rel, data)
    return len(data)


def _decoded(data: bytes, path: str) -> str:
    """Text with a few bytes that are not UTF-8 is still text; with a NUL or many of them it is not."""
    probe = data[:_BINARY_PROBE].decode(errors="replace")
    try:
        text, damaged = data.decode(), False
    except UnicodeDecodeError:
        text, damaged = data.decode(errors="replace"), probe.count("\ufffd") * 10 > len(probe)
    if damaged or "\0" in probe:
        raise ToolRefused(f"{path!a}: is not a text file ({len(data)} bytes)")
    return text


def _lines(text: str) -> Iterator[str]:
    """Lines with their ends, divided at newlines only, as editors and compilers count them; never all at once."""
    return io.StringIO(text, newline="\n")


def _listed(entry: Entry) -> str:
    match entry.kind:
        case "directory":
            return f"{entry.path}/"
        case "file":
            return f"{entry.path} {entry.size}"
        case "link":
            return f"{entry.path} [link, not followed]"
        case "other":
            return f"{entry.path} [special]"
