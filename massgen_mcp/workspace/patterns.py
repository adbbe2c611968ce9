"""Patterns that others wrote: of models, and in files of a repository. None of them can hang or fill this process.

A regular expression can take unlimited time to match, so each match is bounded, and other threads run meanwhile.
"""

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

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
