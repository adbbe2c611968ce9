"""Answers that say the same by their words, where no agent that could judge it says so. Pure.

The theory. Words of the question tell nothing, and a small model says first what it means. Of the first sentences that
tell anything, two that say the same share most: "The capital of France is Paris." and "It is Paris."
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from massgen_mcp.coordination.count import find_rivals
from massgen_mcp.coordination.substance import find_contradictions

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]{2,}")
_SENTENCE_END = re.compile(r"(?<!\b[A-Z]\.)(?<=[.!?])\s+|\n+")
MOST_SHARED_BY_CHANCE = 0.5
"""Of the telling words of the shorter of two sentences, more have to stand in the other one: "John Adams" is not "John
Tyler"."""
_FILLERS = frozenset(
    (
        *("an", "and", "answer", "are", "as", "at", "be", "but", "by", "can", "do", "for", "from", "has", "have", "in"),
        *("is", "it", "its", "known", "my", "no", "not", "of", "on", "or", "question", "so", "that", "the", "there"),
        *("this", "to", "was", "we", "what", "which", "who", "will", "with", "you", "your", "called"),
    )
)
"""Words that stand in any text."""
_NUMBERS = {
    name: str(number)
    for number, name in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905 - a sentence
    )
}


def find_agreeing(texts: Mapping[str, str], name: str, question: str = "") -> tuple[str, ...]:
    """Return the names of the other texts that say the same as the one of this name. Numbers, where both have some,
    have to be the same, and short ones must not contradict it.
    """
    if len(texts) < 3 or name not in texts:
        return ()
    asked = _list_words(question)
    claims = {one: _read_claim(text, asked) for one, text in texts.items()}
    rivals = find_rivals(name, texts, find_contradictions(texts))
    others = (other for other in texts if other != name and other not in rivals)
    return tuple(other for other in others if _agree_in_claim(claims[name], claims[other]))


@dataclass(frozen=True, slots=True)
class _Claim:
    """The numbers and other telling words of a sentence."""

    numbers: frozenset[str]
    words: frozenset[str]


def _agree_in_claim(one: _Claim, other: _Claim) -> bool:
    if one.numbers and other.numbers:
        return not one.numbers.isdisjoint(other.numbers)
    shared, least = one.words & other.words, min(len(one.words), len(other.words))
    return len(shared) > MOST_SHARED_BY_CHANCE * least


def _read_claim(text: str, asked: frozenset[str]) -> _Claim:
    """Read the first sentence that has a word which stands neither in the question nor in any text."""
    for sentence in _SENTENCE_END.split(text):
        if found := _list_words(sentence) - asked - _FILLERS:
            numbers = frozenset(word for word in found if word[0].isdigit())
            return _Claim(numbers, found - numbers)
    return _Claim(frozenset(), frozenset())


def _list_words(text: str) -> frozenset[str]:
    words: list[str] = _WORD.findall(text.casefold())
    return frozenset(_NUMBERS.get(word, word) for word in words)
