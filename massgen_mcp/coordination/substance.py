"""Short answers that contradict each other, and so cannot say the same. Pure.

The theory. Agents that want to agree call "4" and "22" the same. In a short answer a number, a name or a yes *is* the
answer. The *core* of an answer is its whole text if that has at most `MOST_WORDS` words, else its first sentence if
that has at most `MOST_FIRST_WORDS`. Two cores contradict each other if

- each has a number that the other one lacks; or they do not claim the same numbers, where both claim some, or both are
  whole texts. An answer *claims* the numbers that it comes to: not those of an explanation ("8, since it is 2 times 4",
  "8 (2 times 4)"), nor those before its verb, if there are some after it ("2 + 2 is 4"). Those below a hundred may be
  words;
- one of them says yes and the other one no, or they have the same words but for a "not";
- each is a name and nothing else, and they have no word in common; or one is, and the other one has names, none of
  which is that one; or one is a list of names ("Ann and Bob"), and the other one lacks one of these; or they are the
  same sentence but for a name at its beginning or end. A name is a word with a capital letter; abbreviations and longer
  forms of a name are the same name.

Names that stand in a text by the way never tell two answers apart, and of longer texts nothing is said here.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product

MOST_WORDS = 12
"""A text of more words is not short."""
MOST_FIRST_WORDS = 4
"""Nor is the first sentence of a longer one with more words."""
MOST_LETTERS = 160
MOST_NAME_WORDS = 3
"""A name has at most so many words."""
LEAST_STEM = 4
"""Two words that begin with so many letters, of which one is all of the other's beginning, are one name."""

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_FIRST = re.compile(r"[^\n]*?[.!](?=\s)")
"""The first sentence. What no such mark ends may be a heading."""
_NUMBER = re.compile(r"(?:(?<![\w.,])|(?<=\bv))(?:(?<!\S)[-\u2212])?\d+(?:[.,]\d+)*(?![^\W_]*\d)")
_SUM = re.compile(
    r"\d[\d.,]*"
    r"(?:\s*(?:[-+*/\u00d7\u00f7^\u2212]|\b(?:plus|minus|times|and|by|divided by|multiplied by)\b)\s*\d[\d.,]*)+"
    r"(?=\s*(?:=|\b(?:is|are|equals|makes|gives)\b))"
)
_THOUSANDS = re.compile(r",(?=\d{3}(?:\D|$))")
_FULL_HOUR = re.compile(r"(?<=\d):00\b")
_EXPLANATION = re.compile(
    r"\s*(?:\([^()]*\)|(?:[,;\u2013\u2014]|\s-)\s*(?:because|since|as|for|which|who|where|when|being|given|making|the|an?|its|"
    r"with|namely|i\.e\.|e\.g\.)\s.*|\s(?:because|since|as|which)\s.*)",
    re.I | re.S,
)
"""The part of a short answer that says why, or more of the same thing."""
_VERB = re.compile(r"=|\b(?:is|are|was|were|equals?|makes?|gives?)\b", re.I)
"""The verb of a claim: after it stands the result."""
_AND = re.compile(r"\s+(?:and|&)\s+", re.I)
_LIST_MARK = re.compile(r"(?:[-*#>]+|\d+[.)])[ \t]+\S")
_AFTER_NAME = re.compile(r"\s+(?:is|was|are|were)\b")
"""The text after the first word of a sentence, where that is a name."""
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
_YES = frozenset({"yes", "true", "correct", "right", "yeah", "yep"})
_NO = frozenset({"no", "false", "incorrect", "wrong", "untrue", "nope"})
_NEGATIONS = _NO | {"not", "never", "cannot"}
_FRAME = frozenset(
    (
        *("a", "all", "an", "and", "answer", "are", "as", "at", "both", "but", "by", "did", "for", "he", "here", "i"),
        *("if", "in", "is", "it", "its", "my", "neither", "none", "of", "on", "or", "our", "result", "she", "so"),
        *("that", "the", "there", "these", "they", "this", "those", "to", "was", "we", "what", "you", "your"),
    )
)
"""Words that are no part of a name."""


@dataclass(frozen=True, slots=True)
class Core:
    """The part of an answer that says what it comes to."""

    is_whole: bool
    """It is the whole answer."""
    words: tuple[str, ...]
    numbers: frozenset[str]
    claimed: frozenset[str]
    """The numbers that it comes to."""
    listed: tuple[frozenset[str], ...]
    """The words of each name, if it is a list of names."""
    names: frozenset[str]
    """Words with a capital letter that no beginning of a sentence explains; all, if the core is a name."""
    proper: frozenset[str]
    """Those of them that would be names in any core."""
    is_name: bool
    """It is a name and nothing else."""

    @property
    def polarity(self) -> bool | None:
        """True for a yes, False for a no, if it begins with that or says nothing else."""
        said = [word for word in self.words if word not in _FRAME]
        if not said or (self.words[0] not in _YES | _NO and len(said) > 1):
            return None
        return (said[0] in _YES) if said[0] in _YES | _NO else None

    @property
    def is_negated(self) -> bool:
        return any(word in _NEGATIONS or word.endswith(("n't", "n\u2019t")) for word in self.words)

    @property
    def affirmed(self) -> tuple[str, ...]:
        """The words without a negation."""
        return tuple(
            "can" if word in ("cannot", "can't", "can\u2019t") else re.sub("n['\u2019]t$", "", word)
            for word in self.words
            if word not in _NEGATIONS - {"cannot"}
        )

    def contradicts(self, other: "Core") -> bool:
        if self._has_other_numbers(other):
            return True
        if None not in (self.polarity, other.polarity) and self.polarity is not other.polarity:
            return True
        if self.is_negated != other.is_negated and self.affirmed == other.affirmed:
            return True
        return self._names_another(other)

    def _has_other_numbers(self, other: "Core") -> bool:
        mine, others = self.numbers, other.numbers
        if mine and others and not (mine <= others or others <= mine):
            return True
        both_claim = bool(self.claimed and other.claimed)
        return self.claimed != other.claimed and (both_claim or (self.is_whole and other.is_whole))

    def _names_another(self, other: "Core") -> bool:
        if self._differs_in_a_name(other) or _lists_another(self, other) or _lists_another(other, self):
            return True
        both_name = (self.is_name or other.is_name) and self.names and other.names
        return bool(both_name) and not _share_a_name(self, other)

    def _differs_in_a_name(self, other: "Core") -> bool:
        """Return whether the two are the same sentence but for a name at its beginning or end."""
        for place, rest in ((0, slice(1, None)), (-1, slice(None, -1))):
            one, another = self.words[place], other.words[place]
            mine, others = (core.names if core.is_name else core.proper for core in (self, other))
            named = one in mine and another in others and not _is_same_name(one, another)
            if named and self.words[rest] == other.words[rest]:
                return len(self.words) > 1
        return False


def _lists_another(one: Core, other: Core) -> bool:
    """Return whether the one is a list of names, and the other one, a name or a list as well, lacks one of them."""
    if not one.listed or not other.is_whole or not (other.is_name or other.listed):
        return False
    return any(not any(_is_same_name(*pair) for pair in product(name, other.names)) for name in one.listed)


def _share_a_name(one: Core, other: Core) -> bool:
    if _abbreviates(one, other) or _abbreviates(other, one):
        return True
    pairs = (*product(one.names, other.words), *product(other.names, one.words))
    return any(_is_same_name(*pair) for pair in pairs)


def _is_same_name(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return short == long or (len(short) >= LEAST_STEM and long.startswith(short))


def _abbreviates(one: Core, other: Core) -> bool:
    """Return whether a word of the one core is made of the first letters of the other's."""
    for initials in (
        "".join(word[0] for word in other.words if word in other.names),
        "".join(word[0] for word in other.words if word not in _FRAME),
        "".join(word[0] for word in other.words),
    ):
        if len(initials) > 1 and any(word in (initials, initials + "s") for word in one.names):
            return True
    return False


@lru_cache(maxsize=4096)
def read_core(text: str) -> Core | None:
    """Return the core of an answer; None if it has none that is short."""
    text = text.strip()
    whole = _read_words(text, MOST_WORDS, is_whole=True)
    if whole is not None or _LIST_MARK.match(text):
        return whole
    first = _FIRST.match(text, 0, MOST_LETTERS)
    return None if first is None else _read_words(first.group(), MOST_FIRST_WORDS, is_whole=False)


def _read_words(text: str, most: int, *, is_whole: bool) -> Core | None:
    found = [] if len(text) > MOST_LETTERS else [*_WORD.finditer(text)]
    if not 0 < len(found) <= most:
        return None
    words = tuple(_fold(word.group()) for word in found)
    numbers = _read_numbers(_SUM.sub(" ", text)) or _read_numbers(text)
    alone = len(found) == 1
    known = (frozenset[str]() if alone else _FRAME) | _YES | _NEGATIONS | _VALUES.keys()
    capital = {
        place
        for place, word in enumerate(found)
        if (words[place] not in known or (place and word.group() == "A"))
        and any(char.isupper() for char in word.group())
    }
    told = {place for place, word in enumerate(words) if alone or word not in _FRAME}
    is_name = 0 < len(told) <= MOST_NAME_WORDS and told <= capital
    first = {0} if not _AFTER_NAME.match(text, found[0].end()) else set[int]()
    proper = frozenset(words[place] for place in capital - first)
    names = frozenset(words[place] for place in capital) if is_name else proper
    return Core(is_whole, words, numbers, _read_claimed(text), _read_list(text), names, proper, is_name)


def _read_claimed(text: str) -> frozenset[str]:
    """Read the numbers that a short answer comes to."""
    claim = _EXPLANATION.sub("", text).strip() or text
    before, after = claim, ""
    for verb in _VERB.finditer(claim):
        before, after = claim[: verb.start()], claim[verb.end() :]
    is_result = _read_numbers(after) and not _NUMBER.fullmatch(before.strip())
    return _read_numbers(after if is_result else before) or _read_numbers(claim)


def _read_list(text: str) -> tuple[frozenset[str], ...]:
    """Read the names of an answer that is a list of names and nothing else."""
    parts = [_WORD.findall(part) for part in _AND.split(text)]
    if len(parts) < 2 or not all(words and all(word[0].isupper() for word in words) for words in parts):
        return ()
    return tuple(frozenset(map(_fold, words)) for words in parts)


def _fold(word: str) -> str:
    plain = unicodedata.normalize("NFKD", word.casefold())
    return "".join(char for char in plain if not unicodedata.combining(char))


def _read_numbers(text: str) -> frozenset[str]:
    text = _FULL_HOUR.sub("", text)
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


def find_agreement(texts: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """Return the names of the texts in groups that say the same, by their words or their numbers: texts with other
    words agree only if both are short, have the same numbers, and contradict each other in nothing.
    """
    return group_names(texts, lambda one, other: _agrees(texts[one], texts[other]))


def group_names(names: Iterable[str], agree: Callable[[str, str], bool]) -> tuple[tuple[str, ...], ...]:
    """Return the names in groups: each is in the first one with all of which it agrees."""
    groups = list[list[str]]()
    for name in names:
        found = next((group for group in groups if all(agree(name, other) for other in group)), None)
        if found is None:
            groups.append([name])
        else:
            found.append(name)
    return tuple(map(tuple, groups))


def _agrees(one: str, other: str) -> bool:
    words = [[_fold(word) for word in _WORD.findall(text)] for text in (one, other)]
    if words[0] == words[1] or one.strip() == other.strip():
        return bool(words[0]) or one.strip() == other.strip()
    cores = read_core(one), read_core(other)
    if cores[0] is None or cores[1] is None or not (cores[0].is_whole and cores[1].is_whole):
        return False
    return bool(cores[0].claimed) and cores[0].claimed == cores[1].claimed and not cores[0].contradicts(cores[1])


def find_contradictions(texts: Mapping[str, str]) -> frozenset[frozenset[str]]:
    """Return the pairs of names whose texts cannot say the same."""
    cores = {name: core for name, text in texts.items() if (core := read_core(text)) is not None}
    pairs: Iterable[tuple[str, str]] = combinations(cores, 2)
    return frozenset(frozenset(pair) for pair in pairs if cores[pair[0]].contradicts(cores[pair[1]]))
