"""What many questions come to: shares, and gaps closed, with intervals from drawing the tasks anew."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

RESAMPLES = 300


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question by one way to decide. `lot`: the chance of a random answer to be right. `best`: whether one is."""

    task: str
    right: float
    calls: float
    lot: float = 0.0
    best: float = 0.0
    dollars: float = 0.0
    weak: tuple[str, ...] = ()
    """Why the decision is weak."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value, and the bounds between which it lies with 95 %."""

    value: float
    low: float
    high: float

    def points(self) -> str:
        return f"{100 * self.value:+.1f} [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"

    def percent(self) -> str:
        return f"{100 * self.value:.0f} % [{100 * self.low:.0f}, {100 * self.high:.0f}]"


Sums = tuple[float, ...]


def right(sums: Sums) -> float:
    return sums[0] / sums[4]


def calls(sums: Sums) -> float:
    return sums[1] / sums[4]


def gap(sums: Sums) -> float:
    """The part of the way from a random answer to the best one."""
    return (sums[0] - sums[2]) / (sums[3] - sums[2])


def estimate(of: Callable[[Sums], float], outcomes: Sequence[Outcome], less: Sequence[Outcome] = ()) -> Estimate:
    """`of` these outcomes, `less` the same of others on the same tasks. Tasks are drawn with replacement."""
    names = sorted({outcome.task for outcome in outcomes})
    one, other = _by_task(outcomes), _by_task(less)

    def value(drawn: Sequence[str]) -> float:
        found = of(_total([one[name] for name in drawn]))
        return found - of(_total([other[name] for name in drawn])) if less else found

    random = Random("bootstrap")
    values = sorted(value(random.choices(names, k=len(names))) for _ in range(RESAMPLES))
    return Estimate(value(names), values[int(0.025 * RESAMPLES)], values[int(0.975 * RESAMPLES)])


def describe_costs(outcomes: Sequence[Outcome]) -> str:
    """Say what a question costs, and how often its result is weak, by reason."""
    count = len(outcomes)
    dollars = sum(one.dollars for one in outcomes) / count
    told = f"{sum(one.calls for one in outcomes) / count:.2f} calls, ${dollars:.4f} for each question; weak"
    reasons = Counter(reason for one in outcomes for reason in one.weak)
    shares = [f"{reason} {times / count:.1%}" for reason, times in sorted(reasons.items())]
    return f"{told} {sum(map(bool, (one.weak for one in outcomes))) / count:.1%}" + f" ({', '.join(shares)})" * bool(
        shares
    )


def _by_task(outcomes: Sequence[Outcome]) -> dict[str, Sums]:
    found: dict[str, Sums] = {}
    for one in outcomes:
        sums = (one.right, one.calls, one.lot, one.best, 1.0)
        found[one.task] = _total([found[one.task], sums]) if one.task in found else sums
    return found


def _total(each: Sequence[Sums]) -> Sums:
    return tuple(map(sum, zip(*each, strict=True)))
