"""Finding things in a workspace: listings of directories and whole trees, and searches for text.

What a call may take is bounded: entries, bytes, matches, time. Where a bound was met, the result says so.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from pydantic.json_schema import SkipJsonSchema

from massgen_mcp.tools.base import Arguments, ToolRefused, WellFormedText
from massgen_mcp.tools.file_text import MAX_FILE_BYTES, NotText, lines_of, read_text
from massgen_mcp.workspace.directory import Workspace
from massgen_mcp.workspace.gitignore import MAX_LINE_SEARCHED, Deadline, Glob, Pattern, PatternRefused, TookTooLong
from massgen_mcp.workspace.guard import DirectoryListing, Entry, PathRefused

MAX_LISTED = 1000
MAX_WALKED = 20_000
MAX_MATCHES = 200
MAX_LINE_SHOWN = 2000
MAX_SEARCHED_BYTES = 64 * 1024 * 1024
MAX_SECONDS = 20.0
MAX_PATTERN_CHARACTERS = 1000
MAX_NAMED = 3
"""How many of the files that were left out are named."""

Find = Callable[[str], tuple[int, int] | None]
"""Where in a line the first match begins and ends."""


class ListFiles(Arguments):
    path: str = "."
    recursive: bool = False
    include_ignored: bool = False
    glob: SkipJsonSchema[str] = ""
    """Of the files that are listed. Models are not told of it; other agents have a tool of its own for it."""


class SearchFiles(Arguments):
    pattern: WellFormedText
    path: str = "."
    glob: str = ""
    literal: bool = False
    ignore_case: bool = False
    include_ignored: bool = False


def list_files(workspace: Workspace, wanted: ListFiles) -> str:
    if not wanted.recursive:
        found = workspace.listing(wanted.path, recursive=False, limit=MAX_LISTED)
        lines = [_entry_line(entry) for entry in found.entries]
        if found.cut:
            lines.append(f"[cut at {MAX_LISTED} entries]")
        return "\n".join([*lines, *_left_out(found)]) or "[empty]"
    wanted = wanted.model_copy(update={"path": workspace.make_relative(wanted.path)})
    found = _walked(workspace, wanted.path, include_ignored=wanted.include_ignored)
    if wanted.glob:
        return "\n".join([*_fitting(found, wanted), *_left_out(found)]) or "[no file fits]"
    lines = list(_fold_entries(found.entries, MAX_LISTED))
    if found.cut:
        lines.append(f"[more than {MAX_WALKED} entries: there may be more below a directory than is said here]")
    return "\n".join([*lines, *_left_out(found)]) or "[empty]"


def _fitting(found: DirectoryListing, wanted: ListFiles) -> list[str]:
    """Return the lines of the files that the glob fits."""
    deadline = Deadline.after(MAX_SECONDS)
    try:
        glob = Glob(wanted.glob)
    except PatternRefused as refused:
        raise ToolRefused(str(refused)) from None
    files = [entry for entry in found.entries if entry.kind == "file"]
    lines = [_entry_line(entry) for entry in files if _fits(glob, entry.path, wanted.path, deadline)]
    return [*lines[:MAX_LISTED], f"[cut at {MAX_LISTED} entries]"] if len(lines) > MAX_LISTED else lines


def search_files(workspace: Workspace, wanted: SearchFiles) -> str:
    deadline = Deadline.after(MAX_SECONDS)
    try:
        find = _finder(wanted)
        glob = Glob(wanted.glob) if wanted.glob else None
    except PatternRefused as refused:
        raise ToolRefused(f"{refused}; set `literal` to search for plain text") from None
    wanted = wanted.model_copy(update={"path": workspace.make_relative(wanted.path)})
    found = _walked(workspace, wanted.path, include_ignored=wanted.include_ignored)
    search = _Search(workspace, find, deadline)
    for entry in found.entries:
        wanted_file = entry.kind == "file" and (glob is None or _fits(glob, entry.path, wanted.path, deadline))
        if wanted_file and not search.take(entry):
            break
    lines = [*search.matches, *search.notes()]
    if found.cut:
        lines.append(f"[not all was searched: more than {MAX_WALKED} entries, narrow `path`]")
    return "\n".join([*(lines if search.matches else ["[no match]", *lines]), *_left_out(found)])


class _Search:
    """One search over files, until a bound is met."""

    def __init__(self, workspace: Workspace, find: Find, deadline: Deadline) -> None:
        self.matches: list[str] = []
        self._workspace = workspace
        self._find = find
        self._deadline = deadline
        self._bytes_left = MAX_SEARCHED_BYTES
        self._binary: list[str] = []
        self._large: list[str] = []
        self._long_lines: list[str] = []
        self._stopped = ""

    def take(self, entry: Entry) -> bool:
        """Search one file. Whether to go on with another one."""
        if entry.size > MAX_FILE_BYTES:
            self._large.append(entry.path)
            return True
        self._bytes_left -= entry.size
        if self._bytes_left < 0:
            self._stopped = "not all was searched: too much text, narrow `path` or `glob`"
            return False
        try:
            text = read_text(self._workspace, entry.path)
        except NotText:
            self._binary.append(entry.path)
            return True
        except PathRefused:
            return True
        return self._take_text(entry.path, text)

    def _take_text(self, path: str, text: str) -> bool:
        number = 0
        try:
            for number, full in enumerate(lines_of(text), 1):
                self._deadline.check()
                line = full.rstrip("\r\n")
                if len(line) > MAX_LINE_SEARCHED:
                    self._long_lines.append(f"{path}:{number}")
                if (place := self._find(line)) is None:
                    continue
                if len(self.matches) == MAX_MATCHES:
                    self._stopped = f"cut at {MAX_MATCHES} matches"
                    return False
                self.matches.append(f"{path}:{number}: {_shown_match(line, *place)}")
        except TookTooLong:
            self._stopped = (
                f"stopped at {path}:{number}, it took too long: simplify the pattern, narrow `path` or `glob`"
            )
            return False
        return True

    def notes(self) -> Iterator[str]:
        """What was not searched, and why."""
        if self._stopped:
            yield f"[{self._stopped}]"
        for paths, why in (
            (self._binary, "binary, not searched"),
            (self._large, f"larger than {MAX_FILE_BYTES} bytes, not searched"),
            (self._long_lines, f"only the first {MAX_LINE_SEARCHED} characters of the line were searched"),
        ):
            if paths:
                more = f" and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else ""
                yield f"[{', '.join(paths[:MAX_NAMED])}{more}: {why}]"


def _finder(wanted: SearchFiles) -> Find:
    """Raises `PatternRefused`."""
    if not wanted.pattern or (wanted.literal and "\n" in wanted.pattern):
        raise ToolRefused("'pattern' must be a piece of one line")
    if len(wanted.pattern) > MAX_PATTERN_CHARACTERS:
        raise ToolRefused(f"'pattern' must have at most {MAX_PATTERN_CHARACTERS} characters")
    if not wanted.literal:
        pattern = Pattern(wanted.pattern, ignore_case=wanted.ignore_case)

        def find(line: str) -> tuple[int, int] | None:
            match = pattern.search(line)
            return None if match is None else match.span()

        return find
    needle = wanted.pattern.casefold() if wanted.ignore_case else wanted.pattern

    def find_literal(line: str) -> tuple[int, int] | None:
        at = (line.casefold() if wanted.ignore_case else line).find(needle)
        return None if at < 0 else (at, at + len(needle))

    return find_literal


def _fits(glob: Glob, path: str, below: str, deadline: Deadline) -> bool:
    """Whether the glob fits the agent's name of the file, or its name within the directory that is searched."""
    within = "/".join(part for part in below.split("/") if part not in {"", "."})
    try:
        return glob.fits(path, deadline) or (bool(within) and glob.fits(path.removeprefix(f"{within}/"), deadline))
    except TookTooLong:
        raise ToolRefused("it takes too long to match the glob; simplify it, or narrow `path`") from None


def _walked(workspace: Workspace, path: str, *, include_ignored: bool) -> DirectoryListing:
    deadline = None if include_ignored else Deadline.after(MAX_SECONDS)
    try:
        return workspace.listing(path, recursive=True, limit=MAX_WALKED, without_ignored=deadline)
    except TookTooLong:
        raise ToolRefused(
            "it takes too long to find out what the .gitignore files leave out; narrow `path`, or set include_ignored"
        ) from None


def _fold_entries(entries: Sequence[Entry], limit: int) -> Iterator[str]:
    """The entries of a tree, sorted; directories near the top first, and those that do not fit only with their number
    of entries.
    """
    directories = {entry.path for entry in entries if entry.kind == "directory"}
    children: dict[str, list[Entry]] = {}
    below: dict[str, int] = {}
    for entry in entries:
        parent = entry.path.rpartition("/")[0]
        children.setdefault(parent if parent in directories else "", []).append(entry)
        while parent in directories:
            below[parent] = below.get(parent, 0) + 1
            parent = parent.rpartition("/")[0]
    top = children.pop("", [])
    shown, folded = top[:limit], set[str]()
    pending = deque(entry.path for entry in shown if entry.kind == "directory")
    while pending:
        path = pending.popleft()
        inside = children.get(path, [])
        if len(shown) + len(inside) > limit:
            folded.add(path)
            continue
        shown += inside
        pending += [entry.path for entry in inside if entry.kind == "directory"]
    for entry in sorted(shown, key=lambda entry: entry.path):
        more = f" [{below[entry.path]} below, list it to see them]" if entry.path in folded else ""
        yield f"{_entry_line(entry)}{more}"
    if len(top) > limit:
        yield f"[cut at {limit} entries]"


def _entry_line(entry: Entry) -> str:
    match entry.kind:
        case "directory":
            return f"{entry.path}/"
        case "file":
            return f"{entry.path} {entry.size}"
        case "link":
            return f"{entry.path} [link, not followed]"
        case "other":
            return f"{entry.path} [special]"


def _left_out(found: DirectoryListing) -> Iterator[str]:
    if found.passed_over:
        yield f"[{len(found.passed_over)} more with unusable names]"
    if found.hidden:
        yield f"[{found.hidden} more hidden: they commonly hold secrets]"
    if found.ignored:
        yield f"[{found.ignored} more left out: .git, and what .gitignore names; include_ignored shows them]"


def _shown_match(line: str, begin: int, end: int) -> str:
    """A line, or as much of a long one as shows the match."""
    if end <= MAX_LINE_SHOWN:
        return line[:MAX_LINE_SHOWN]
    first = max(0, min(begin, end - MAX_LINE_SHOWN // 2) - 100)
    return "".join(islice(line, first, first + MAX_LINE_SHOWN))
