"""The votes counted by substance, and the lots that decide where votes do not. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from massgen_mcp.coordination.camps import StandingVote, camps
from massgen_mcp.events.parts import Camp


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

    @classmethod
    def of(
        cls, seed: str, authors: Mapping[str, str], choices: Sequence[StandingVote], alike: Mapping[str, str]
    ) -> "Count":
        """`authors`: of every standing answer, by label; `alike` as in `camps`."""
        votes = dict.fromkeys(authors, 0)
        for choice in choices:
            votes[choice.label] += 1
        counted = tuple(
            Camp(answers=labels, votes=sum(votes[label] for label in labels))
            for labels in camps(authors, choices, alike)
        )
        return cls(seed, votes, counted)

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
