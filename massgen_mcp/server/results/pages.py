"""Cuts a text into pages that join to the whole again. Pure."""

import json
from bisect import bisect_right

ROOM_FOR_AN_END = 5
"""A page may lose one part in so many to end with a line, or at least with a word."""


def page_of(text: str, offset: int, characters: int, size: int) -> tuple[str, int | None]:
    """The page from `offset`, a place in `text`: at most so many characters, and at most `size` bytes in JSON; and
    where the next one begins, None after the last. It is never empty where something is left, ends with a line or a
    word where one ends near, and never within what a reader takes for one character.
    """
    rest = text[offset : offset + max(1, min(characters, size))]
    fitting = max(1, bisect_right(range(1, len(rest) + 1), size, key=lambda end: _bytes(rest[:end])))
    if offset + fitting >= len(text):
        return text[offset:], None
    end = offset + _good_end(text[offset:], fitting)
    return text[offset:end], end


def _bytes(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")) - 2


def _good_end(text: str, most: int) -> int:
    """At most `most`, which is inside of the text."""
    least = most - most // ROOM_FOR_AN_END
    for mark in ("\n", " "):
        if (place := text.rfind(mark, least, most)) != -1:
            return place + 1
    from wcwidth import grapheme_boundary_before

    return grapheme_boundary_before(text[: most + 1], most + 1) or most
