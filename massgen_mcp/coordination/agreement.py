"""Answers that say the same by their words, where no agent that could judge it says so. Pure.

The theory. A model that cannot judge answers still answers, and what most of its answers say is more often right than
what it votes for. So such a voter chooses among the answers that agree with its own, where there are any.

The *claim* of an answer is the sentence that has the most words in common with the question, of several the first one:
"So, a week is 7 days." Words of the question, and words that stand in any text, tell nothing. Two answers agree if the
claim of one stands in the other: one of its numbers, or, if it has none, more than half of its telling words. "It is
Paris." and "The capital of France is Paris, on the Seine." agree. Answers that agree form groups, in which every two
agree, so that nothing is put together by links alone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from massgen_mcp.coordination.substance import find_contradictions, group_names

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]{2,}")
_SENTENCE_END = re.compile(r"(?<!\b[A-Z]\.)(?<=[.!?])\s+|\n+")
MOST_SHARED_BY_CHANCE = 0.5
"""Of the telling words of a claim, more have to stand in the other answer: "John Adams" is not "John Tyler"."""
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
    """Return the names of the other texts in the group of the one of this name. Short texts that contradict each other
    are in different groups. Of one or two texts none is a majority.
    """
    if len(texts) < 3 or name not in texts:
        return ()
    asked = _list_words(question) - _FILLERS
    answers = {one: _read_answer(text, asked) for one, text in texts.items()}
    rivals = find_contradictions(texts)

    def agree(one: str, other: str) -> bool:
        is_said = answers[one].is_said_in(answers[other]) or answers[other].is_said_in(answers[one])
        return is_said and frozenset({one, other}) not in rivals

    support = {one: sum(agree(one, other) for other in texts if other != one) for one in texts}
    ranked = sorted(texts, key=lambda one: (-support[one], texts[one]))  # the same for every viewer
    group = next(group for group in group_names(ranked, agree) if name in group)
    return tuple(other for other in texts if other in group and other != name)


@dataclass(frozen=True, slots=True)
class _Answer:
    """The telling words of an answer, and the numbers and other words of its claim."""

    words: frozenset[str]
    numbers: frozenset[str]
    telling: frozenset[str]

    def is_said_in(self, other: "_Answer") -> bool:
        if self.numbers:
            return not self.numbers.isdisjoint(other.words)
        return len(self.telling & other.words) > MOST_SHARED_BY_CHANCE * len(self.telling)


def _read_answer(text: str, asked: frozenset[str]) -> _Answer:
    sentences = [_list_words(sentence) for sentence in _SENTENCE_END.split(text)]
    telling = [words for words in sentences if words - asked - _FILLERS]
    claim = max(telling, key=lambda words: len(words & asked), default=frozenset[str]()) - asked - _FILLERS
    numbers = frozenset(word for word in claim if word[0].isdigit())
    words = frozenset[str]().union(*telling) - asked - _FILLERS
    return _Answer(words, numbers, claim - numbers)


def _list_words(text: str) -> frozenset[str]:
    words: list[str] = _WORD.findall(text.casefold())
    return frozenset(_NUMBERS.get(word, word) for word in words)
