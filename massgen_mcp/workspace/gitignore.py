"""Globs, and what the `.gitignore` files of a tree leave out: both mean what they mean to git.

The `.gitignore` files are read through the guard, as any other file. Only those of the tree itself count, neither the
user's global one nor one above what the user named.
"""

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from massgen_mcp.workspace.guard import DirectoryListing, PathRefused, Root

if TYPE_CHECKING:
    import regex


# ---------------------------------------------------------------------------------------------------------------------
# Patterns that others wrote: of models, and in files of a repository. None of them can hang or fill this process.
# A regular expression can take unlimited time to match, so each match is bounded, and other threads run meanwhile.


MAX_PATTERN_CHARACTERS = 4000
MAX_LINE_SEARCHED = 100_000
"""Characters of one text that a pattern is tried on, which bounds the memory of a match."""
MAX_SECONDS_A_MATCH = 2.0

_CALL_OF_GROUP = re.compile(r"\(\?(?:R|[0-9]|&|P>|[+-][0-9])")
_ESCAPED = re.compile(r"\\.", re.DOTALL)


class PatternRefused(Exception):
    """The pattern cannot be used; the message says why."""


class TookTooLong(Exception):
    """One match, or all the work that was allowed together, took longer than its limit."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a piece of work has to be given up, in seconds of the monotonic clock."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        return cls(time.monotonic() + seconds)

    def check(self) -> None:
        """Raises `TookTooLong` once the time is up."""
        if time.monotonic() > self.at:
            raise TookTooLong


class Pattern:
    """A regular expression in the syntax of Python's `re` and a little more. Raises `PatternRefused` for what is none.

    A group cannot be called from elsewhere in the pattern: that takes memory without bound.
    """

    def __init__(self, text: str, *, ignore_case: bool = False) -> None:
        import regex

        self.text = text
        if len(text) > MAX_PATTERN_CHARACTERS:
            raise PatternRefused(f"the pattern has {len(text)} characters, the limit is {MAX_PATTERN_CHARACTERS}")
        if _CALL_OF_GROUP.search(_ESCAPED.sub("", text)):
            raise PatternRefused("a pattern that calls itself or a group of its own, as (?R) or (?1), is not supported")
        try:
            self._compiled: regex.Pattern[str] = regex.compile(text, regex.IGNORECASE if ignore_case else 0)
        except (regex.error, ValueError, OverflowError, RecursionError) as error:
            raise PatternRefused(f"not a regular expression: {str(error)[:200]}") from None

    def search(self, text: str) -> "regex.Match[str] | None":
        """The first match anywhere. Raises `TookTooLong`."""
        try:
            return self._compiled.search(
                text, 0, MAX_LINE_SEARCHED, concurrent=True, partial=False, timeout=MAX_SECONDS_A_MATCH
            )
        except TimeoutError:
            raise TookTooLong from None

    def match(self, text: str) -> "regex.Match[str] | None":
        """The match at the beginning. Raises `TookTooLong`."""
        try:
            return self._compiled.match(
                text, 0, MAX_LINE_SEARCHED, concurrent=True, partial=False, timeout=MAX_SECONDS_A_MATCH
            )
        except TimeoutError:
            raise TookTooLong from None


FILE_NAME = ".gitignore"
MAX_FILE_BYTES = 256 * 1024
MAX_RULES = 2000
MAX_GLOB_CHARACTERS = 500
MAX_ALTERNATIVES = 64
"""What the braces of one glob may stand for."""
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_PARENT = "ps_d"
"""pathspec's name for the group that stands for the slash after a directory that was matched."""
_DIRECTORY = f".*(?P<{_PARENT}>/)$"
_OF_ALL = {".": "", f"(?P<{_PARENT}>/)": _DIRECTORY, "/": _DIRECTORY}
"""pathspec's expressions for all files and for all directories are to be searched for, and all others to be matched."""


class IgnoreRules:
    """Lines as in a `.gitignore` file. The last one that fits a path decides."""

    def __init__(self, lines: Iterable[str]) -> None:
        from pathspec.patterns.gitignore.base import GitIgnorePatternError
        from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

        self._rules: list[_Rule] = []
        for line in lines:
            try:
                expression, chosen = GitIgnoreSpecPattern.pattern_to_regex(line)
                if expression is not None and chosen is not None:
                    self._rules.append(_Rule(Pattern(_OF_ALL.get(expression, expression)), chosen))
            except (GitIgnorePatternError, PatternRefused):
                continue  # git passes over what it cannot read, too
            if len(self._rules) == MAX_RULES:
                break
        self._any = [Pattern(part) for part in _alternatives(rule.pattern.text for rule in self._rules)]
        """Whether any of the rules fits at all; most files are done with then."""

    def decide(self, path: str, deadline: Deadline, *, directory: bool) -> bool | None:
        """Whether the lines choose this very path, whatever they say of the directories above it. None: no line fits.

        Raises `TookTooLong`.
        """
        deadline.check()
        subject = f"{path}/" if directory else path
        if any(pattern.match(subject) is not None for pattern in self._any):
            for rule in reversed(self._rules):
                deadline.check()
                if rule.fits(subject):
                    return rule.chosen
        return None


class _Rule(NamedTuple):
    """A line as pathspec reads it."""

    pattern: Pattern
    chosen: bool

    def fits(self, subject: str) -> bool:
        """Whether it means this path, and not only a directory above it."""
        match = self.pattern.match(subject)
        if match is None:
            return False
        if _PARENT in match.groupdict():
            return match.end(_PARENT) in (-1, len(subject))
        return match.end() < len(subject)


class Glob:
    """A pattern of file names as git and ripgrep read them: `*.py` at any depth, `src/**/*.ts`, `*.{ts,tsx}`,
    `!*.min.js`. Raises `PatternRefused`.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MAX_GLOB_CHARACTERS:
            raise PatternRefused(f"the glob is longer than {MAX_GLOB_CHARACTERS} characters")
        wanted = text.removeprefix("!")
        self._negated = wanted != text
        self._rules = IgnoreRules(_without_braces(wanted))

    def fits(self, path: str, deadline: Deadline) -> bool:
        """Whether it fits a file, or a directory above it. Raises `TookTooLong`."""
        parts = path.split("/")
        paths = ("/".join(parts[:depth]) for depth in range(len(parts), 0, -1))
        found = any(self._rules.decide(part, deadline, directory=part != path) for part in paths)
        return found != self._negated


class Ignored:
    """Takes out of the listings of one root what its `.gitignore` files ignore, and every `.git`.

    To be shown a directory only after the one above it. What lies at `start` is shown although it be ignored itself.
    """

    def __init__(self, root: Root, start: str, deadline: Deadline) -> None:
        """Raises `TookTooLong`."""
        self._root = root
        self._deadline = deadline
        self._start = "" if start == "." else start
        self._known: dict[str, tuple[_Scope, ...]] = {}
        """Of each directory that was listed: what holds in it, the nearest first."""
        self._above = self._scopes_above()
        self.left_out = 0

    def __call__(self, directory: str, found: DirectoryListing) -> DirectoryListing:
        """The listing of this directory, without what is ignored. Raises `TookTooLong`."""
        scopes = self._above if directory == self._start else self._known[directory.rpartition("/")[0]]
        if any(_base_name(entry.path) == FILE_NAME for entry in found.entries):
            scopes = (*self._of(directory), *scopes)
        self._known[directory] = scopes
        kept = tuple(
            entry
            for entry in found.entries
            if _base_name(entry.path) != ".git" and not self._ignores(scopes, entry.path, entry.kind == "directory")
        )
        self.left_out += len(found.entries) - len(kept)
        return replace(found, entries=kept)

    def _scopes_above(self) -> tuple["_Scope", ...]:
        """What the directories above the start say about what lies in it."""
        scopes: tuple[_Scope, ...] = ()
        parts = self._start.split("/") if self._start else []
        for depth in range(len(parts)):
            scopes = (*self._of("/".join(parts[:depth])), *scopes)
            if self._ignores(scopes, "/".join(parts[: depth + 1]), True):
                scopes = ()
        return scopes

    def _ignores(self, scopes: Iterable["_Scope"], path: str, is_directory: bool, /) -> bool:
        """Return what the nearest file says that says anything about the path."""
        for scope in scopes:
            chosen = scope.rules.decide(path.removeprefix(scope.within), self._deadline, directory=is_directory)
            if chosen is not None:
                return chosen
        return False

    def _of(self, directory: str) -> Iterator["_Scope"]:
        within = f"{directory}/" if directory else ""
        try:
            data = self._root.read_bytes(f"{within}{FILE_NAME}", MAX_FILE_BYTES)
        except PathRefused:
            return
        yield _Scope(within, IgnoreRules(data.decode(errors="replace").split("\n")))


class _Scope(NamedTuple):
    """A `.gitignore` file: the prefix of the paths it speaks of, and what it says."""

    within: str
    rules: IgnoreRules


def _base_name(path: str) -> str:
    return path.rpartition("/")[2]


def _alternatives(expressions: Iterable[str]) -> Iterator[str]:
    """Regular expressions that fit where one of these does."""
    parts: list[str] = []
    for expression in expressions:
        if sum(len(part) + 5 for part in [*parts, expression]) > MAX_PATTERN_CHARACTERS:
            yield "|".join(parts)
            parts = []
        parts.append(f"(?:{expression})")
    if parts:
        yield "|".join(parts)


def _without_braces(glob: str) -> list[str]:
    """What a glob with `{a,b}` stands for; git itself knows no braces. Raises `PatternRefused` for too many."""
    done: list[str] = []
    pending = [glob]
    while pending:
        text = pending.pop(0)
        if (braces := _BRACES.search(text)) is None:
            done.append(text)
            continue
        pending += [f"{text[: braces.start()]}{each}{text[braces.end() :]}" for each in braces[1].split(",")]
        if len(pending) + len(done) > MAX_ALTERNATIVES:
            raise PatternRefused(f"the braces of the glob stand for more than {MAX_ALTERNATIVES} patterns")
    return done
