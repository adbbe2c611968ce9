"""Two that answered the same items: what may be said of the difference. Pure.

Exact and without a library: what is needed are the binomial distribution, the normal one's quantiles, and resampling.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from statistics import NormalDist

LEVEL = 0.05
RESAMPLES = 4_000
POWER = 0.8
FEWEST = 20
"""Of fewer items nothing may be claimed."""


@dataclass(frozen=True, slots=True)
class Paired:
    """How many items each of the two has right, alone or together."""

    both: int
    only_first: int
    only_second: int
    neither: int

    @classmethod
    def of(cls, first: Mapping[str, bool], second: Mapping[str, bool]) -> "Paired":
        """Of the items that both have."""
        pairs = [(first[item], second[item]) for item in first if item in second]
        both, first_alone, second_alone = (pairs.count(each) for each in ((True, True), (True, False), (False, True)))
        return cls(both, first_alone, second_alone, pairs.count((False, False)))

    @property
    def items(self) -> int:
        return self.both + self.only_first + self.only_second + self.neither

    @property
    def difference(self) -> float:
        return (self.only_first - self.only_second) / max(1, self.items)

    @property
    def low(self) -> float:
        """Between this and `high` lies the difference of the shares in truth, with 95 %."""
        return _interval(self.only_first, self.only_second, self.items)[0]

    @property
    def high(self) -> float:
        return _interval(self.only_first, self.only_second, self.items)[1]

    @property
    def p(self) -> float:
        """Of McNemar's exact test, on both sides."""
        n, least = self.only_first + self.only_second, min(self.only_first, self.only_second)
        return min(1.0, sum(math.comb(n, k) for k in range(least + 1)) / 2 ** (n - 1)) if n else 1.0

    @property
    def p_text(self) -> str:
        return f"p = {self.p:.3f}" if self.p >= 0.0005 else "p < 0.001"

    def is_settled(self, comparisons: int = 1) -> bool:
        """Whether a difference is shown, however often one looks, so that of so many comparisons none is settled by
        chance but in 5 %: the likelihood of what was seen, averaged over all differences, against that of none.
        """
        a, b = self.only_first, self.only_second
        evidence = math.lgamma(a + 1) + math.lgamma(b + 1) - math.lgamma(a + b + 2) + (a + b) * math.log(2)
        return evidence >= math.log(comparisons / LEVEL)

    def needed(self, difference: float) -> int | None:
        """How many items it takes to show such a difference in 80 % of the cases, if as many items tell the two apart
        as here; None where there were none of these.
        """
        apart = max((self.only_first + self.only_second) / max(1, self.items), difference)
        if not self.only_first + self.only_second:
            return None
        normal = NormalDist()
        sure, often = normal.inv_cdf(1 - LEVEL / 2), normal.inv_cdf(POWER)
        return math.ceil((sure * math.sqrt(apart) + often * math.sqrt(apart - difference**2)) ** 2 / difference**2)

    def claim(self, first: str, second: str, *, settled: bool) -> str:
        """The one sentence that may be said."""
        n = self.items
        if n < FEWEST:
            return f"{n} items are too few to compare {first} and {second}."
        points = f"{100 * abs(self.difference):.1f} points"
        between = f"between {100 * self.low:+.1f} and {100 * self.high:+.1f}"
        if settled or (self.p < LEVEL and self.low * self.high > 0):
            how = "better" if self.difference > 0 else "worse"
            return (
                f"On {n} items of this kind, {first} is {how} than {second} by {points} (95 % confidence: {between}). "
                "This says nothing about other tasks or other versions of these models."
            )
        needed = self.needed(0.05)
        more = f"; it takes about {needed:,} items to show a difference of 5 points" if needed else ""
        return (
            f"{n} items are too few to show whether {first} or {second} is better ({self.p_text}): the difference "
            f"could be anywhere {between} points{more}."
        )


@cache
def _interval(first: int, second: int, items: int) -> tuple[float, float]:
    """By resampling the items, of which these many are right alone."""
    if not items:
        return 0.0, 0.0
    if not first + second:  # resampling says nothing of what was never seen: so often it may be all the same
        most = 1 - (LEVEL / 2) ** (1 / items)
        return -most, most
    random = Random("bootstrap")
    weights = (first, second, items - first - second)
    drawn = sorted(sum(random.choices((1, -1, 0), weights, k=items)) for _ in range(RESAMPLES))
    low, high = (drawn[round(share * (RESAMPLES - 1))] / items for share in (LEVEL / 2, 1 - LEVEL / 2))
    return low, high
