"""Answers that say the same by their words, where no agent that could judge it says so. Pure.

The theory. Words that stand in every answer come from the question and tell nothing. Of the others, two answers that
say the same share most: "The capital of France is Paris." and "It is Paris." share what a third, wrong one has not.
"""

import re
from collections import Counter
from collections.abc import Mapping

from massgen_mcp.coordination.count import find_rivals
from massgen_mcp.coordination.substance import find_contradictions

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]{2,}")
LEAST_SHARE = 0.25
"""So much of the telling words of the shorter of two answers has to stand in the other one."""
_FILLERS = frozenset(
    (
        *("an", "and", "answer", "are", "as", "at", "be", "but", "by", "can", "do", "for", "from", "has", "have", "in"),
        *("is", "it", "its", "my", "no", "not", "of", "on", "or", "question", "so", "that", "the", "this", "to", "was"),
        *("we", "what", "which", "who", "will", "with", "you", "your"),
    )
)
"""Words that stand in any text."""


def find_agreeing(texts: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return the names of the other texts that say the same as the one of this name, by the numbers and words that do
    not stand in all of them. Numbers, where both have some, have to be the same; short ones must not contradict it.
    """
    words = {one: _words(text) for one, text in texts.items()}
    counted = Counter(word for found in words.values() for word in found)
    telling = {one: {word for word in found if counted[word] < len(texts)} for one, found in words.items()}
    if len(texts) < 3 or name not in texts:
        return ()
    rivals = find_rivals(name, texts, find_contradictions(texts))
    return tuple(
        other
        for other in texts
        if other != name and other not in rivals and _agree(telling[name], telling[other], words, name, other)
    )


def _agree(one: set[str], other: set[str], words: Mapping[str, set[str]], name: str, other_name: str) -> bool:
    if words[name] == words[other_name]:
        return bool(words[name])
    numbers = [{word for word in found if word[0].isdigit()} for found in (one, other)]
    if all(numbers) and numbers[0].isdisjoint(numbers[1]):
        return False
    shared = one & other
    return bool(shared) and len(shared) >= LEAST_SHARE * min(len(one), len(other))


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.casefold()) if word not in _FILLERS}
