"""The exact probabilities that the simulation must meet, computed without the orchestrator.

Both sums go over all outcomes of a trial. Errors with a common cause are a mixture: with probability rho all agents
answer alike, and whatever they vote for is then right with probability p.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import factorial, prod

from examples.simulation.agents import Judging
from examples.simulation.world import World

# -- majority -------------------------------------------------------------------------------------------------------


def majority(world: World, agents: int) -> float:
    """The probability that the plurality of `agents` is right: Condorcet's theorem, with any number of options.

    The sum goes over how many agents answer each option. Of T options tied at the top each wins with probability 1/T:
    they have equally many authors, so in the run-off equally many vote for each by conviction, all others choose among
    them at random, and so is what is tied after that decided. With two options and an odd team there are no ties, and
    the sum is the binomial one.
    """
    chances = _chances(world)
    independent = 0.0
    for counts in _splits(agents, world.choices):
        ways = factorial(agents) // prod(factorial(count) for count in counts)
        probability = ways * prod(chance**count for chance, count in zip(chances, counts, strict=True))
        top = max(counts)
        if counts[0] == top:
            independent += probability / counts.count(top)
    return world.rho * world.p + (1 - world.rho) * independent


def _chances(world: World) -> tuple[float, ...]:
    """The chance of each option: the right one, the common error, the others."""
    wrong = 1 - world.p
    other = wrong * (1 - world.c) / (world.choices - 1)
    return (world.p, wrong * world.c + other, *[other] * (world.choices - 2))


def _splits(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write `total` as an ordered sum of `parts` counts."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _splits(total - first, parts - 1):
            yield (first, *rest)


# -- judges ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """Probabilities of one trial; `self_votes` is the expected share of votes for the voter's own answer."""

    right: float
    tie: float
    self_votes: float
    unanimous: float


def judges(world: World, judging: Judging, order: tuple[int, ...]) -> Verdict:
    """The sum over who is right and over all sequences of votes, for a small team.

    `order` has the seats in the order of their votes, also in a run-off. It matters only where voters follow earlier
    votes *and* prefer themselves: an early voter's answer gathers more votes then.
    """
    agents = len(order)
    sums: defaultdict[str, float] = defaultdict(float)
    for rights in product((True, False), repeat=agents):
        likelihood = _likelihood(world, rights)
        run_offs: dict[tuple[int, ...], float] = {}
        for votes, chance in _sequences(rights, judging, order):
            tally = [votes.count(seat) for seat in range(agents)]
            top, weight = max(tally), likelihood * chance
            tied = tuple(seat for seat in range(agents) if tally[seat] == top)
            if tied not in run_offs:
                run_offs[tied] = _run_off(tied, rights, judging, order)
            sums["right"] += weight * run_offs[tied]
            sums["tie"] += weight * (len(tied) > 1)
            sums["self"] += weight * sum(voter == seat for voter, seat in zip(order, votes, strict=True)) / agents
            sums["unanimous"] += weight * (top == agents)
    return Verdict(sums["right"], sums["tie"], sums["self"], sums["unanimous"])


def _run_off(tied: tuple[int, ...], rights: tuple[bool, ...], judging: Judging, order: tuple[int, ...]) -> float:
    """The chance that a run-off among these seats, all with as many votes, finds a right one. What it leaves tied is
    decided at random. One seat alone has won.
    """
    neutral = tuple(voter for voter in order if voter not in tied)
    right = 0.0
    for votes, chance in _sequences(rights, judging, neutral or order, tied):
        tally = {seat: votes.count(seat) for seat in tied}
        leaders = [seat for seat in tied if tally[seat] == max(tally.values())]
        right += chance * sum(rights[seat] for seat in leaders) / len(leaders)
    return right


def _likelihood(world: World, rights: tuple[bool, ...]) -> float:
    independent = prod(world.p if right else 1 - world.p for right in rights)
    common = (world.p if rights[0] else 1 - world.p) if len(set(rights)) == 1 else 0.0
    return world.rho * common + (1 - world.rho) * independent


def _sequences(
    rights: tuple[bool, ...], judging: Judging, order: tuple[int, ...], tied: tuple[int, ...] = ()
) -> list[tuple[tuple[int, ...], float]]:
    """All sequences of votes, each with its probability. A vote is the seat it is for; in a run-off, one of `tied`."""
    sequences: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    for voter in order:
        sequences = [
            ((*votes, seat), probability * chance)
            for votes, probability in sequences
            for seat, chance in enumerate(_vote(voter, votes, rights, judging, tied))
            if chance
        ]
    return sequences


def _vote(
    voter: int, votes: tuple[int, ...], rights: tuple[bool, ...], judging: Judging, tied: tuple[int, ...]
) -> list[float]:
    """The voter's chance of voting for each seat, after `votes`; in a run-off, equal ones came before those."""
    seats = range(len(rights))
    shown = [not tied or seat in tied for seat in seats]
    right = [rights[seat] and shown[seat] for seat in seats]
    skill = judging.skill if any(right) else 0.0
    chances = [skill * right[seat] / max(1, sum(right)) + (1 - skill) * shown[seat] / sum(shown) for seat in seats]
    if judging.authors_shown and shown[voter]:
        chances = [
            judging.self_bias * (seat == voter) + (1 - judging.self_bias) * chance
            for seat, chance in enumerate(chances)
        ]
    if judging.votes_visible and (votes or tied):
        tally = [votes.count(seat) if shown[seat] else -1 for seat in seats]
        leads = [count == max(tally) for count in tally]
        chances = [
            judging.herding * lead / sum(leads) + (1 - judging.herding) * chance
            for lead, chance in zip(leads, chances, strict=True)
        ]
    return chances
