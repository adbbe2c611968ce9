"""The votes counted by substance: which answers say the same, and the one that is named of equal answers. Pure.

Two answers that say the same must not split the vote. Those with the same text, and the same changed files, are joined
without a word: whoever names one of them names all. Of others a voter names, with its choice, the other answers on its
ballot that say the same as it: with the choice they are that voter's *set*. The rule, for every two answers:

- A voter whose set holds both calls them the same. One whose set holds one of them tells them apart. One whose set
  holds neither, or who said nothing about sameness, has no say in it.
- They are *joined* when at least two voters call them the same, and more do so than tell them apart. Where as many do
  as do not, they are joined when both of their authors call them the same.
- Two that contradict each other (see `substance`) are never joined. Nor are they through others:
  of answers that would be one camp, only those that contradict the same ones of it stay joined.

A *camp* is a set of answers that are joined directly or through others; an answer that nothing is joined to is a camp
of its own. So no single voter can make a camp. And nothing is put together by links alone: of two joined pairs with an
answer in common, at least one voter calls all three answers the same. (Of those whose set holds the common answer, more
than half call each pair the same, or half of them with the author of the common answer: somebody is in both.)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations

from massgen_mcp.events.parts import Camp


@dataclass(frozen=True, slots=True)
class StandingVote:
    """A standing vote: for `label`, which says the same as `same_as` (labels). None: the voter said nothing of that."""

    voter: str
    label: str
    same_as: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Opinion:
    """What is said of two answers: who calls them the same, and how many tell them apart."""

    same: frozenset[str]
    apart: int

    def joins(self, authors: frozenset[str]) -> bool:
        return len(self.same) >= 2 and (
            len(self.same) > self.apart or (len(self.same) == self.apart and authors <= self.same)
        )

    def might_join(self, undecided: int) -> bool:
        """Whether they could be joined, whatever this many further voters said."""
        return len(self.same) + undecided >= max(2, self.apart)


Contradictions = AbstractSet[frozenset[str]]
"""Pairs of answers that cannot say the same."""


def opinions(
    labels: Sequence[str],
    choices: Sequence[StandingVote],
    alike: Mapping[str, str],
    contradictions: Contradictions = frozenset(),
) -> Iterator[tuple[str, str, Opinion]]:
    """Of every two of the answers that do not contradict each other."""
    groups = [
        (choice.voter, _with_alike({choice.label, *choice.same_as}, alike))
        for choice in choices
        if choice.same_as is not None
    ]
    naming = {label: frozenset([voter for voter, named in groups if label in named]) for label in labels}
    for one, other in combinations(labels, 2):
        if {one, other} in contradictions:
            continue
        yield one, other, Opinion(naming[one] & naming[other], len(naming[one] ^ naming[other]))


def camps(
    authors: Mapping[str, str],
    choices: Sequence[StandingVote],
    alike: Mapping[str, str],
    contradictions: Contradictions = frozenset(),
) -> tuple[tuple[str, ...], ...]:
    """The camps of the answers, whose authors by label are `authors`; labels and camps in the order given there.
    `alike`: of answers that are the same, label by label of the first.
    """
    joined = [*alike.items()]
    if any(choice.same_as is not None for choice in choices):
        joined += [
            (one, other)
            for one, other, opinion in opinions(tuple(authors), choices, alike, contradictions)
            if opinion.joins(frozenset({authors[one], authors[other]}))
        ]
    labels = tuple(authors)
    rivals = {label: find_rivals(label, camp, contradictions) for camp in _components(labels, joined) for label in camp}
    return _components(labels, [(one, other) for one, other in joined if rivals[one] == rivals[other]])


def find_rivals(label: str, camp: Iterable[str], contradictions: Contradictions) -> frozenset[str]:
    """Return the answers of a camp that this one contradicts."""
    return frozenset(other for other in camp if {label, other} in contradictions)


def possible_camps(
    labels: Sequence[str],
    choices: Sequence[StandingVote],
    undecided: int,
    alike: Mapping[str, str],
    contradictions: Contradictions = frozenset(),
) -> tuple[tuple[str, ...], ...]:
    """Camps that hold whatever might be put together by `undecided` further votes: no camp of these answers can come to
    hold any that are in different ones here.
    """
    joined = [(one, other) for one, other in alike.items() if one in labels and other in labels]
    joined += [
        (one, other)
        for one, other, link in opinions(labels, choices, alike, contradictions)
        if link.might_join(undecided)
    ]
    return _components(tuple(labels), joined)


def _with_alike(named: set[str], alike: Mapping[str, str]) -> set[str]:
    firsts = {alike.get(label, label) for label in named}
    return named | firsts | {label for label, first in alike.items() if first in firsts}


def _components(labels: tuple[str, ...], joined: Sequence[tuple[str, str]]) -> tuple[tuple[str, ...], ...]:
    camp_of = {label: {label} for label in labels}
    for one, other in joined:
        if camp_of[one] is not camp_of[other]:
            camp_of[one] |= camp_of[other]
            for label in camp_of[other]:
                camp_of[label] = camp_of[one]
    together = {id(camp): tuple(label for label in labels if label in camp) for camp in camp_of.values()}
    return tuple(together.values())


def lot(seed: str, label: str) -> str:
    """The lot of an answer: the SHA-256 of `SEED/LABEL`. The lowest one is drawn.

    Every answer is drawn as often as any other, and anybody who knows the run's id can do it again.
    """
    return sha256(f"{seed}/{label}".encode()).hexdigest()


def drawn(seed: str, labels: Iterable[str]) -> str:
    return min(labels, key=lambda label: lot(seed, label))


@dataclass(frozen=True, slots=True)
class Count:
    """`votes` by label, every standing answer listed, in the order of the config; the camps in that order, too."""

    seed: str
    votes: Mapping[str, int]
    camps: tuple[Camp, ...]
    choices: Sequence[StandingVote]
    alike: Mapping[str, str]
    contradictions: Contradictions

    @classmethod
    def of(
        cls,
        seed: str,
        authors: Mapping[str, str],
        choices: Sequence[StandingVote],
        alike: Mapping[str, str],
        contradictions: Contradictions = frozenset(),
    ) -> "Count":
        """`authors`: of every standing answer, by label; `alike` and `contradictions` as in `camps`."""
        votes = dict.fromkeys(authors, 0)
        for choice in choices:
            votes[choice.label] += 1
        counted = tuple(
            Camp(answers=labels, votes=sum(votes[label] for label in labels))
            for labels in camps(authors, choices, alike, contradictions)
        )
        return cls(seed, votes, counted, choices, alike, contradictions)

    @property
    def top(self) -> tuple[Camp, ...]:
        """The camps with the most votes."""
        most = max(camp.votes for camp in self.camps)
        return tuple(camp for camp in self.camps if camp.votes == most)

    def leaders(self, camp: Camp) -> tuple[str, ...]:
        """The most voted answers of a camp."""
        most = max(self.votes[label] for label in camp.answers)
        return tuple(label for label in camp.answers if self.votes[label] == most)

    def leader(self, camp: Camp) -> str:
        """The most voted answer of a camp; of several, the one that is drawn."""
        return drawn(self.seed, self.leaders(camp))

    def camp_of(self, label: str) -> Camp:
        return next(camp for camp in self.camps if label in camp.answers)
