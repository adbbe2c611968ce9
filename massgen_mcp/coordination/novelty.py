"""How new is an answer? The documented measure behind `answer_novelty_requirement`. Pure.

The overlap of two texts is the Jaccard index of their sets of word pairs: the number of pairs that both have, divided
by the number that at least one has. Case, punctuation and layout do not count; a text of one word counts as that word.
0 means nothing in common, 1 the same words in the same order. Pairs rather than words, because two different answers to
one question share most of their words, but not their order.
"""

import re
from itertools import pairwise
from typing import Literal

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
