"""Markdown in one line, as people read it: for places that are too small to render it. Pure."""

import re

from massgen_mcp.views.plain_text import plain

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
    return " ".join(filter(None, (_line(row) for row in text.splitlines())))


def end_of(text: str, characters: int) -> str:
    """The end of what `text` says, without marks: at least so many characters, if there are as many."""
    rows: list[str] = []
    for row in reversed(text.splitlines()):
        if words := _line(row):
            rows.append(words)
        if sum(map(len, rows)) >= characters:
            break
    return " ".join(reversed(rows))


def newest_line(text: str) -> str:
    """The last line of `text` that says something, without marks."""
    return end_of(text, 1)


def _line(row: str) -> str:
    words = _BULLET.sub("• ", _BLOCK.sub("", row))
    words = _EMPHASIS.sub(r"\2", _CODE.sub(r"\1", _LINK.sub(r"\1", words)))
    return " ".join(plain(_UNCLOSED.sub("", words)).replace("|", " ").split())
