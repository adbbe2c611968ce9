"""Lines of styled text for a terminal, and how wide they are there. Whatever is put in comes out as plain text.

Must not know escape codes or colours: a style is a word for what the text means.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate, takewhile
from typing import Literal, NamedTuple

from massgen_mcp.views.plain_text import plain

Style = Literal[
    "", "strong", "emphasis", "dim", "frame", "title", "busy", "good", "bad", "accent", "keyword", "name", "number"
]

READABLE_WIDTH = 100
"""Wider lines are hard to read."""

_FENCE = re.compile(r"\s*(```|~~~)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)]) +")


class Span(NamedTuple):
    text: str
    style: Style = ""


Line = tuple[Span, ...]


def line(*spans: Span | str) -> Line:
    """A line of these, made safe for a terminal."""
    return tuple(
        Span(plain(span), "") if isinstance(span, str) else Span(plain(span.text), span.style) for span in spans
    )


def width_of(text: str) -> int:
    """Columns that `text` takes. Its characters are printable."""
    return sum(_widths(text))


def _widths(text: Iterable[str]) -> Iterable[int]:
    from wcwidth import wcwidth  # whoever draws nothing needs none of its tables

    return (max(0, wcwidth(character)) for character in text)


def text_of(styled: Line) -> str:
    return "".join(span.text for span in styled)


def clip(text: str, width: int) -> str:
    """`text` in at most `width` columns; what is cut off ends in an ellipsis."""
    if width_of(text) <= width:
        return text
    return f"{text[: _fitting(text, width - 1)]}…" if width > 0 else ""


def clip_start(text: str, width: int) -> str:
    """The end of `text` in at most `width` columns."""
    return text[len(text) - _fitting(reversed(text), width) :]


def _fitting(text: Iterable[str], width: int) -> int:
    """How many characters fit into so many columns."""
    return sum(1 for _ in takewhile(lambda taken: taken <= width, accumulate(_widths(text))))


def fit(text: str, width: int) -> str:
    """`text` in exactly `width` columns."""
    clipped = clip(text, width)
    return clipped + " " * (width - width_of(clipped))


def clip_line(styled: Line, width: int) -> Line:
    """The line in at most `width` columns."""
    kept, room = list[Span](), width
    for span in styled:
        text = clip(span.text, room)
        kept.append(Span(text, span.style))
        room -= width_of(text)
        if text != span.text:
            break
    return tuple(kept)


def fit_line(styled: Line, width: int) -> Line:
    """The line in exactly `width` columns."""
    clipped = clip_line(styled, width)
    return (*clipped, Span(" " * (width - width_of(text_of(clipped)))))


def wrap(text: str, width: int, *, indent: int = 0) -> list[str]:
    """One line of text as lines of at most `width` columns, broken at spaces where that is possible; all but the first
    begin with `indent` spaces. Spaces within stay as they are.
    """
    lines, rest, room = list[str](), plain(text), max(2, width)
    prefix = ""
    while width_of(rest) > room - width_of(prefix):
        head = _head(rest, room - width_of(prefix))
        lines.append(prefix + head.rstrip())
        rest = rest[len(head) :].lstrip()
        prefix = " " * min(indent, room // 2)
    return [*lines, prefix + rest] if rest or not lines else lines


def _head(text: str, width: int) -> str:
    """As much of `text` as fits, up to its last space if there is one after something else."""
    end = max(1, _fitting(text, width))
    at = text.rfind(" ", 0, end + 1)
    return text[: at + 1] if at > 0 and text[:at].strip() else text[:end]


def box(title: Line, body: Iterable[Line], foot: Line, width: int, *, corners: str = "┌┐└┘") -> list[Line]:
    """`body` in a frame of `width` columns, with a line of text in its upper and in its lower edge."""
    inner = width - 4
    return [
        _edge(corners[0], title, corners[1], width),
        *((Span("│ ", "frame"), *fit_line(row, inner), Span(" │", "frame")) for row in body),
        _edge(corners[2], foot, corners[3], width),
    ]


def _edge(left: str, text: Line, right: str, width: int) -> Line:
    clipped = clip_line(text, width - 6)
    if not text_of(clipped):
        return (Span(left + "─" * (width - 2) + right, "frame"),)
    rest = width - 5 - width_of(text_of(clipped))
    return (Span(f"{left}─ ", "frame"), *clipped, Span(f" {'─' * rest}{right}", "frame"))


def columns(cells: Sequence[tuple[Span | str, int]]) -> Line:
    """Cells side by side, each in its own width, one space between them."""
    row: list[Span] = []
    for cell, width in cells:
        span = Span(cell) if isinstance(cell, str) else cell
        row += [Span(fit(plain(span.text), width), span.style), Span(" ")]
    return tuple(row[:-1])


def as_written(text: str, width: int) -> list[Line]:
    """Markdown as it was written. Prose is broken at words; code is left to the terminal, so that it can be copied."""
    lines, fenced = list[Line](), False
    for raw in text.splitlines():
        row = plain(raw.expandtabs(4)).rstrip()
        fence = bool(_FENCE.match(row))
        fenced ^= fence
        if fence or fenced:
            lines.append((Span(row),))
        else:
            item = _ITEM.match(row)
            lines += [
                (Span(part),) for part in wrap(row, min(width, READABLE_WIDTH), indent=len(item[0]) if item else 0)
            ]
    return lines
