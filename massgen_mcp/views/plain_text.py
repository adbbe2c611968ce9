"""Text of models, tools and people made fit for one line of a log, a table or a terminal: without control characters,
and without the marks of Markdown where it cannot be rendered. Pure.
"""

import re
from collections.abc import Iterable, Iterator

PREVIEW = 200


def plain(text: str) -> str:
    """One line without control characters: what a model or a tool wrote can do nothing to a terminal."""
    return "".join(character if character.isprintable() else " " for character in text)


def plain_lines(texts: Iterable[str]) -> Iterator[str]:
    """Texts of several lines as plain lines with their ends."""
    return (f"{plain(line)}\n" for text in texts for line in text.splitlines())


def counted(number: int, what: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def preview(text: str, limit: int = PREVIEW) -> str:
    """The beginning of `text` as one line of at most `limit` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


_BLOCK = re.compile(r"^\s*(?:#{1,6}\s+|>\s?|```.*|~~~.*|[-*_]{3,}\s*$|\|?(?:\s*:?-{2,}:?\s*\|)+.*$)")
"""What begins a heading or a quotation, and lines that only divide."""
_BULLET = re.compile(r"^\s*[-*+]\s+(?:\[[ xX]\]\s+)?")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*(?:\s+\"[^\"]*\")?\)")
_EMPHASIS = re.compile(r"(\*{1,3}|(?<![\w_])_{1,2})(?=\S)(.+?)(?<=\S)\1(?![\w_])")
_CODE = re.compile(r"`+([^`]+)`+")
_UNCLOSED = re.compile(r"\*{2,}|`+|(?<!\S)\*(?=[^\s.*][^*]*$)")
"""Marks of what is still being written, or was cut off."""


def unmarked(text: str) -> str:
    """All of `text` as one line without marks; what only divides lines is left out."""
    return " ".join(filter(None, (_row_in_words(row) for row in text.splitlines())))


def end_of(text: str, characters: int) -> str:
    """The end of what `text` says, without marks: at least so many characters, if there are as many."""
    rows: list[str] = []
    for row in reversed(text.splitlines()):
        if words := _row_in_words(row):
            rows.append(words)
        if sum(map(len, rows)) >= characters:
            break
    return " ".join(reversed(rows))


def newest_line(text: str) -> str:
    """The last line of `text` that says something, without marks."""
    return end_of(text, 1)


def _row_in_words(row: str) -> str:
    words = _BULLET.sub("• ", _BLOCK.sub("", row))
    words = _EMPHASIS.sub(r"\2", _CODE.sub(r"\1", _LINK.sub(r"\1", words)))
    return " ".join(plain(_UNCLOSED.sub("", words)).replace("|", " ").split())
