"""The text of an answer by itself: whether it shows anything, and how new it is. Pure.

What shows nothing is no answer, however long it is. How new an answer is, is the documented measure behind
`answer_novelty_requirement`: the overlap of two texts is the Jaccard index of their sets of word pairs, which is the
number of pairs that both have, divided by the number that at least one has. Case, punctuation and layout do not count;
a text of one word counts as that word. 0 means nothing in common, 1 the same words in the same order. Pairs rather than
words, because two different answers to one question share most of their words, but not their order.
"""

import re
import unicodedata
from itertools import pairwise
from typing import Literal

_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\ufffc\ufffd\U0001d159")
"""Of these Unicode says that they are letters or symbols, but they are fillers, blanks, or stand for what was lost."""


Novelty = Literal["lenient", "balanced", "strict"]

MAX_OVERLAP: dict[Novelty, float | None] = {"lenient": None, "balanced": 0.70, "strict": 0.50}
"""An answer that overlaps more than this with a standing answer is refused; None: no check."""

_WORD = re.compile(r"\w+", re.UNICODE)


def overlap(one: str, other: str) -> float:
    """Between 0 and 1. Two texts without any word overlap fully if they are equal, else not at all."""
    mine, theirs = _shingles(one), _shingles(other)
    if not mine and not theirs:
        return float(one.strip() == other.strip())
    return len(mine & theirs) / len(mine | theirs)


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    if len(words) < 2:
        return {(word,) for word in words}
    return set(pairwise(words))


def is_visible(text: str) -> bool:
    """Whether at least one letter, number, punctuation mark or symbol stands in it: white space, control and format
    characters, and marks that have nothing to combine with, show nothing.
    """
    return any(unicodedata.category(char)[0] in "LNPS" and char not in _BLANK_LETTERS for char in text)
