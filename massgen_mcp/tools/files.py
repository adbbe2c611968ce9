"""The file tools of an agent: read, write, edit, move, delete, list and search inside its workspace.

Everything goes through the workspace's guard; must not open a path itself.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Annotated, assert_never

from anyio import to_thread
from pydantic import Field

from massgen_mcp.backends.base import ToolSpec
from massgen_mcp.threads import abandonable
from massgen_mcp.tools.aliases import APPLY_PATCH
from massgen_mcp.tools.base import (
    Arguments,
    ArgumentsT,
    CheckedTool,
    Tool,
    ToolRefused,
    ToolResult,
    WellFormedText,
    tool_spec,
)
from massgen_mcp.tools.codex_patch import PatchedFile, apply_hunks, parse_patch
from massgen_mcp.tools.file_search import ListFiles, SearchFiles, list_files, search_files
from massgen_mcp.tools.file_text import MAX_FILE_BYTES, lines_of, near_lines, read_data, read_text
from massgen_mcp.workspace.directory import ResolvedPath, Workspace
from massgen_mcp.workspace.guard import Entry, PathHidden, PathMissing, PathRefused, shown
from massgen_mcp.workspace.snapshot import SnapshotReport

MAX_COPIED_BYTES = 64 * 1024 * 1024
MAX_COPIED_ENTRIES = 10_000
MAX_OUTPUT_BYTES = 48 * 1024
"""Of what one call reads, files together."""
MAX_FILES_READ = 20
"""Besides the first, in one call."""
MAX_LINE_NUMBER = 1_000_000_000
MAX_PLACES = 5
"""Lines that are told of a text that is there several times."""

FILE_TOOLS = frozenset(
    {"read_file", "write_file", "edit_file", "move_file", "delete_file", "list_files", "search_files", APPLY_PATCH}
)
"""Names of the tools that `file_tools` makes."""

Positive = Annotated[int, Field(ge=1, le=MAX_LINE_NUMBER)]


class ReadFile(Arguments):
    path: str
    offset: Positive = 1
    limit: Positive = 2000
    more: Annotated[tuple[str, ...], Field(max_length=MAX_FILES_READ)] = ()


class WriteFile(Arguments):
    path: str
    content: WellFormedText


class EditFile(Arguments):
    path: str
    old: WellFormedText
    new: WellFormedText
    replace_all: bool = False


class MoveFile(Arguments):
    path: str
    to: str
    keep: bool = False


class DeleteFile(Arguments):
    path: str


class ApplyPatch(Arguments):
    patch: WellFormedText


def file_tool(
    workspace: Workspace,
    spec: ToolSpec,
    kind: type[ArgumentsT],
    act: Callable[[Workspace, ArgumentsT], str],
    *,
    side_effects: bool = False,
    foreign: bool = False,
) -> CheckedTool[ArgumentsT]:
    """A tool whose blocking work `act` does in a thread. `foreign`: its results hold what somebody has written."""

    async def acted(wanted: ArgumentsT) -> ToolResult:
        work = partial(act, workspace, wanted)
        # A file that never comes must not hold up the run; a change is not left half done behind its back.
        return ToolResult(await (to_thread.run_sync(work) if side_effects else abandonable(work)), foreign=foreign)

    return CheckedTool(spec, kind, acted, side_effects=side_effects)


def file_tools(workspace: Workspace) -> tuple[Tool, ...]:
    """The file tools over one workspace."""

    def tool(
        name: str,
        description: str,
        kind: type[ArgumentsT],
        act: Callable[[Workspace, ArgumentsT], str],
        *,
        side_effects: bool = False,
    ) -> CheckedTool[ArgumentsT]:
        spec = tool_spec(name, description, kind)
        return file_tool(workspace, spec, kind, act, side_effects=side_effects, foreign=not side_effects)

    return (
        tool(
            "read_file",
            "Read a text file: `limit` lines from line `offset`; or with `more` several files.",
            ReadFile,
            read_file,
        ),
        tool("write_file", "Create or replace a text file.", WriteFile, write_file, side_effects=True),
        tool(
            "edit_file",
            "Replace the exact text `old`, which must occur once unless `replace_all`.",
            EditFile,
            edit_file,
            side_effects=True,
        ),
        tool(
            "move_file",
            "Move or rename a file or directory; with `keep` make a copy, as you must of peers/ and context/.",
            MoveFile,
            move_file,
            side_effects=True,
        ),
        tool(
            "delete_file",
            "Delete a file, or a directory with everything in it.",
            DeleteFile,
            delete_file,
            side_effects=True,
        ),
        tool(
            "list_files", "List a directory, or a whole tree. peers/ and context/ are read-only.", ListFiles, list_files
        ),
        tool(
            "search_files",
            "Find lines that match a regular expression, or with `literal` hold a plain text. `glob` such as *.py or "
            "src/**/*.{ts,tsx} narrows the files; what .gitignore names is left out.",
            SearchFiles,
            search_files,
        ),
        _patch_tool(workspace),
    )


def _patch_tool(workspace: Workspace) -> CheckedTool[ApplyPatch]:
    """The tool that Codex's models know, which nobody else is told of."""
    spec = replace(tool_spec(APPLY_PATCH, "Change files by a patch.", ApplyPatch), listed=False)
    return file_tool(workspace, spec, ApplyPatch, lambda at, wanted: apply_patch(at, wanted.patch), side_effects=True)


def read_file(workspace: Workspace, wanted: ReadFile) -> str:
    """Read one file, or several from their beginnings, each below its path; one that cannot be read says why."""
    if not wanted.more:
        return _read_part(workspace, wanted, MAX_OUTPUT_BYTES)
    paths = (wanted.path, *wanted.more)
    parts: list[str] = []
    for path in paths:
        one = ReadFile(path=path, limit=wanted.limit)
        try:
            part = _read_part(workspace, one, MAX_OUTPUT_BYTES // len(paths))
        except (ToolRefused, PathRefused) as refused:
            part = f"[not read: {refused}]"
        parts.append(f"==> {path}\n{part}")
    return "\n".join(parts)


def _read_part(workspace: Workspace, wanted: ReadFile, room: int) -> str:
    place = workspace.resolve(wanted.path)
    if place.root.stat(place.rel).kind == "directory":
        raise ToolRefused(f"{shown(wanted.path)} is a directory; list it with list_files")
    text = read_text(workspace, wanted.path)
    total = text.count("\n") + (not text.endswith("\n") and bool(text))
    first = wanted.offset - 1
    if first and first >= total:
        raise ToolRefused(f"offset {wanted.offset} is beyond the end, the file has {total} lines")
    taken: list[str] = []
    for line in islice(lines_of(text), first, first + wanted.limit):
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
    last = first + len(taken)
    further = ""
    if last < total:
        further = f"; offset {last + 1} goes on"
    return f"[lines {first + 1}-{last} of {total}{further}]\n{part}"


_MARK = "\ufeff"


def write_file(workspace: Workspace, wanted: WriteFile) -> str:
    content = _keep_habits(_read_present(workspace, wanted.path), wanted.content)
    size = _write_file(workspace, wanted.path, content)
    if content.count("\r\n") > wanted.content.count("\r\n"):
        return f"wrote {size} bytes, with the line ends of the file as it was (CRLF)"
    return f"wrote {size} bytes"


def _read_present(workspace: Workspace, path: str) -> str:
    """Return what stands in the file now; empty where it is none, or no text."""
    try:
        return read_data(workspace, path).decode()
    except (PathRefused, ToolRefused, UnicodeDecodeError):
        return ""


def _keep_habits(before: str, content: str) -> str:
    """Give new content the line ends and the byte order mark that the file had, where it has none of its own."""
    if "\r\n" in before and before.count("\r\n") == before.count("\n") and "\r" not in content:
        content = content.replace("\n", "\r\n")
    if before.startswith(_MARK) and content and not content.startswith(_MARK):
        content = _MARK + content
    return content


def apply_patch(workspace: Workspace, patch: str) -> str:
    """Apply a patch in Codex's form, all of it or nothing. Raises `ToolRefused`, and `PathRefused` as others do."""
    changes = parse_patch(patch)
    for change in changes:
        workspace.resolve_writable(change.path)
    texts = {change.path: _patch_text(workspace, change) for change in changes}
    for change in changes:
        text = texts[change.path]
        if text is None or (change.moved_to and change.moved_to != change.path):
            place = workspace.resolve_writable(change.path)
            place.root.delete(place.rel)
        if text is not None:
            _write_file(workspace, change.moved_to or change.path, text)
    return "\n".join(f"{change.kind} {change.moved_to or change.path}" for change in changes)


def _patch_text(workspace: Workspace, change: PatchedFile) -> str | None:
    """Return the text of a file after a change; None for one that is deleted."""
    match change.kind:
        case "delete":
            read_data(workspace, change.path)
            return None
        case "add":
            return change.text
        case "update":
            try:
                text = read_data(workspace, change.path).decode()
            except UnicodeDecodeError:
                raise ToolRefused(f"{shown(change.path)} is not UTF-8 text, a patch would damage it") from None
            return apply_hunks(text, change)
        case _:
            assert_never(change.kind)


def edit_file(workspace: Workspace, wanted: EditFile) -> str:
    if not wanted.old or wanted.old == wanted.new:
        raise ToolRefused("'old' is empty" if not wanted.old else "'old' and 'new' are the same")
    workspace.resolve_writable(wanted.path)
    try:
        text = read_data(workspace, wanted.path).decode()
    except UnicodeDecodeError:
        raise ToolRefused("the file is not UTF-8 text, editing would damage it") from None
    old, new = _with_line_ends_of(text, wanted)
    count = text.count(old)
    if not count:
        near = near_lines(text, old)
        hint = near or "it must match exactly, blanks and line ends included"
        raise ToolRefused(f"'old' does not occur in the file; {hint}", foreign=bool(near))
    places = _line_numbers(text, old)
    if count > 1 and not wanted.replace_all:
        raise ToolRefused(f"'old' occurs {count} times, at {places}; give more of its surroundings, or set replace_all")
    if len(text) + count * (len(new) - len(old)) > MAX_FILE_BYTES:
        raise ToolRefused(f"the file would become larger than {MAX_FILE_BYTES} bytes")
    _write_file(workspace, wanted.path, text.replace(old, new))
    return f"replaced {count}, at {places}"


def move_file(workspace: Workspace, wanted: MoveFile) -> str:
    target = workspace.resolve_writable(wanted.to)
    if wanted.keep:
        copied = _copied(workspace.resolve(wanted.path), target)
        left_out = f", left out {copied.left_out} (links, special or hidden)" if copied.left_out else ""
        return f"copied {copied.files} files, {copied.total_bytes} bytes{left_out}"
    source = workspace.resolve_writable(wanted.path)
    source.root.rename(source.rel, target.rel)
    return "moved"


def delete_file(workspace: Workspace, wanted: DeleteFile) -> str:
    place = workspace.resolve_writable(wanted.path)
    place.root.delete(place.rel)
    return "deleted"


def _with_line_ends_of(text: str, wanted: EditFile) -> tuple[str, str]:
    """What to replace and by what, with the line ends of a file that has other ones than models write."""
    if "\r\n" in text and "\r" not in wanted.old and "\r" not in wanted.new:
        return wanted.old.replace("\n", "\r\n"), wanted.new.replace("\n", "\r\n")
    return wanted.old, wanted.new


def _line_numbers(text: str, piece: str) -> str:
    """The lines where `piece` begins, in words."""
    lines: list[str] = []
    at, number, seen = text.find(piece), 1, 0
    while at >= 0 and len(lines) < MAX_PLACES:
        number += text.count("\n", seen, at)
        seen = at
        lines.append(str(number))
        at = text.find(piece, at + len(piece))
    return f"line {', '.join(lines)}{' and more' if at >= 0 else ''}"


def _write_file(workspace: Workspace, path: str, content: str) -> int:
    data = content.encode()
    if len(data) > MAX_FILE_BYTES:
        raise ToolRefused(f"{len(data)} bytes are too many for one file, the limit is {MAX_FILE_BYTES}")
    place = workspace.resolve_writable(path)
    place.root.write_bytes(place.rel, data)
    return len(data)


def _copied(source: ResolvedPath, target: ResolvedPath) -> SnapshotReport:
    """Copy a file, or a directory with everything in it, to a place where nothing is; nothing of it where not all of it
    fits the limits. Links, special files, and what is hidden are left out. Raises `PathRefused`.
    """
    first = source.root.stat(source.rel)
    _require_nothing_at(target)
    if first.kind != "directory":
        _copy_file(source, first, target)
        return SnapshotReport(files=1, total_bytes=first.size)
    if source.root is target.root and f"{target.rel}/".startswith(f"{source.rel}/".removeprefix("./")):
        raise PathRefused(f"{shown(target.rel)}: lies in what is to be copied")
    found = source.root.walk(source.rel, MAX_COPIED_ENTRIES)
    files = [entry for entry in found.entries if entry.kind == "file"]
    total = sum(entry.size for entry in files)
    if found.cut or total > MAX_COPIED_BYTES:
        raise PathRefused(
            f"{shown(source.rel)}: holds more than {MAX_COPIED_ENTRIES} entries or {MAX_COPIED_BYTES} bytes; "
            "copy parts of it"
        )
    target.root.make_dirs(target.rel)
    copied = SnapshotReport(left_out=len(found.passed_over) + found.hidden)
    for entry in found.entries:
        below = entry.path if source.rel == "." else entry.path.removeprefix(f"{source.rel}/")
        place = target._replace(rel=f"{target.rel}/{below}")
        if entry.kind == "directory":
            target.root.make_dirs(place.rel)
        elif entry.kind == "file" and _copied_one(source, entry, place):
            copied.files += 1
            copied.total_bytes += entry.size
        else:
            copied.left_out += 1
    return copied


def _copied_one(source: ResolvedPath, entry: Entry, target: ResolvedPath) -> bool:
    """Copy a file unless it is another name of a hidden one."""
    try:
        _copy_file(source, entry, target)
    except PathHidden:
        return False
    return True


def _copy_file(source: ResolvedPath, entry: Entry, target: ResolvedPath) -> None:
    data = source.root.read_bytes(entry.path, MAX_COPIED_BYTES)
    target.root.write_bytes(target.rel, data, executable=entry.executable)


def _require_nothing_at(target: ResolvedPath) -> None:
    try:
        there = target.root.stat(target.rel)
    except PathMissing:
        return
    inside = ", name a path in it" if there.kind == "directory" else ""
    raise PathRefused(f"{shown(target.rel)}: exists already{inside}")
