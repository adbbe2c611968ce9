"""Short answers that contradict each other, and so cannot say the same. Pure.

The theory. Agents that want to agree call "4" and "22" the same. In a short answer a number, a name or a yes *is* the
answer, so two short answers differ if

- their numbers are not the same ones, or one of them has none. Numbers of a sum before its result ("2 + 2 is 4") do not
  count, and those below a hundred may be words;
- each of them has a name that the other one lacks. A name has a capital letter that no beginning of a sentence
  explains, or a digit in it; the only word of an answer is one, too;
- one of them says yes and the other one no, or they have the same words but for a "not".

Of longer texts nothing is said here: they hold names and numbers by the way.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

MOST_WORDS = 20
MOST_LETTERS = 200
"""A text of more words, or more letters, is not short."""

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_NUMBER = re.compile(r"(?<![\w.,])(?:(?<!\S)[-\u2212])?\d+(?:[.,]\d+)*(?![^\W_]*\d)")
_SUM = re.compile(
    r"\d[\d.,]*"
    r"(?:\s*(?:[-+*/\u00d7\u00f7^\u2212]|\b(?:plus|minus|times|and|by|divided by|multiplied by)\b)\s*\d[\d.,]*)+"
    r"(?=\s*(?:=|\b(?:is|are|equals|makes|gives)\b))"
)
_THOUSANDS = re.compile(r",(?=\d{3}(?:\D|$))")
_UNITS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES = {
    "zero": 0,
    **{word: value for value, word in enumerate((*_UNITS, *_TEENS), start=1)},
    **{word: value for value, word in zip(range(20, 100, 10), _TENS, strict=True)},
}
_SPELLED = re.compile(
    rf"\b(?:({'|'.join(_TENS)})(?:[-\s]({'|'.join(_UNITS)}))?|({'|'.join(('zero', *_TEENS, *_UNITS[1:]))}))\b", re.I
)
"""A number in words. "One" alone seldom counts anything."""
_SENTENCE = re.compile(r"(?:^|[.!?:;\n])\s*[\"'(*\u201c_]*$")
"""The text before the first word of a sentence."""
_AFTER_NAME = re.compile(r"[\"')*\u201d_]*\s*(?:[.,;:!?(]|$|(?:is|was|are|were|has|had)\b|[^\W\d_a-z])")
"""The text after a first word that is a name: it ends the clause, or has a verb or another capital letter after it."""
_NO_NAMES = frozenset(
    (
        *("a", "all", "an", "answer", "as", "at", "both", "but", "each", "false", "he", "here", "i", "if", "in", "it"),
        *("its", "my", "neither", "no", "none", "not", "on", "our", "result", "she", "so", "that", "the", "there"),
        *("these", "they", "this", "those", "true", "we", "what", "yes", "you", "your"),
    )
)
"""Words that are no names at the beginning of a sentence."""
_YES = frozenset({"yes", "true", "correct", "yeah"})
_NEGATIONS = frozenset({"no", "not", "false", "never", "cannot", "incorrect", "untrue", "nope"})


@dataclass(frozen=True, slots=True)
class Substance:
    """The parts of a short answer that no other answer may contradict."""

    words: tuple[str, ...]
    numbers: frozenset[str]
    names: frozenset[str]

    @property
    def is_negative(self) -> bool:
        return any(word in _NEGATIONS or word.endswith(("n't", "n\u2019t")) for word in self.words)

    @property
    def is_positive(self) -> bool:
        return not self.is_negative and not _YES.isdisjoint(self.words)

    @property
    def affirmed(self) -> tuple[str, ...]:
        """The words without a negation."""
        return tuple(
            "can" if word in ("cannot", "can't", "can\u2019t") else re.sub("n['\u2019]t$", "", word)
            for word in self.words
            if word not in _NEGATIONS - {"cannot"}
        )

    def contradicts(self, other: "Substance") -> bool:
        if self.numbers != other.numbers:
            return True
        if self.names.difference(other.words) and other.names.difference(self.words):
            return True
        if (self.is_positive and other.is_negative) or (self.is_negative and other.is_positive):
            return True
        return self.is_negative != other.is_negative and self.affirmed == other.affirmed


@lru_cache(maxsize=4096)
def read_substance(text: str) -> Substance | None:
    """Return the substance of an answer; None if it is not short."""
    text = text.strip()
    found = [*_WORD.finditer(text[: MOST_LETTERS + 1])]
    if len(text) > MOST_LETTERS or not 0 < len(found) <= MOST_WORDS:
        return None
    words = tuple(word.group().casefold() for word in found)
    numbers = _read_numbers(_SUM.sub(" ", text)) or _read_numbers(text)
    names = {word.group().casefold() for word in found if len(words) == 1 or _is_name(text, word)}
    return Substance(
        words, numbers, frozenset(name for name in names - _NO_NAMES - _VALUES.keys() if not name.isdigit())
    )


def _read_numbers(text: str) -> frozenset[str]:
    digits = (_write_plainly(found.group()) for found in _NUMBER.finditer(text))
    spelled = (
        str(sum(_VALUES[word.casefold()] for word in found.groups() if word)) for found in _SPELLED.finditer(text)
    )
    return frozenset((*digits, *spelled))


def _write_plainly(number: str) -> str:
    """Return a number without separators of thousands, and without zeros that say nothing."""
    plain = _THOUSANDS.sub("", number.replace("\u2212", "-"))
    sign, plain = plain[: plain.startswith("-")], plain.removeprefix("-")
    if plain.count(".") == 1:
        plain = plain.rstrip("0").rstrip(".")
    return sign + (plain.lstrip("0") or "0")


def _is_name(text: str, word: re.Match[str]) -> bool:
    found = word.group()
    if any(char.isdigit() for char in found):
        return found[0].isalpha()
    if not any(char.isupper() for char in found) or found.casefold() in _NO_NAMES:
        return False
    first = _SENTENCE.search(text[: word.start()]) is not None
    return not first or found[1:] != found[1:].lower() or _AFTER_NAME.match(text[word.end() :]) is not None


def find_contradictions(texts: Mapping[str, str]) -> frozenset[frozenset[str]]:
    """Return the pairs of names whose texts cannot say the same."""
    short = {name: found for name, text in texts.items() if (found := read_substance(text)) is not None}
    return frozenset(
        frozenset({one, other}) for one, other in combinations(short, 2) if short[one].contradicts(short[other])
    )
