"""Votes counted by substance, early decisions and lots, in the real orchestrator. See the package's docstring.

Nothing exact stands beside these figures: they are given with the interval in which the true value lies with 95 %.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import sqrt
from statistics import fmean, stdev

import anyio

from examples.simulation.agents import Judging, Loyal
from examples.simulation.trial import ONCE, Cell, Trial, run_cell
from examples.simulation.world import World
from massgen_mcp.coordination.state import Rules

WORLD = World(p=0.7, choices=4, c=0.63)
"""Two wrong agents name the same wrong option in 60 % of the cases."""
SKILL, OWN_WEIGHT = 0.3, 2
"""A voter that is shown a right and a wrong answer picks the right one in 65 %; guessing, it prefers its own."""
MISREAD = (None, 0.0, 0.05, 0.2)
"""None: voters say nothing of sameness, so votes are counted by wording."""
TEAMS = (3, 5)
Z = 1.96


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, and how far from it the true one may lie."""

    mean: float
    within: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Estimate":
        return cls(fmean(values), Z * stdev(values) / sqrt(len(values)))

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.within:.4f}"


@dataclass(frozen=True, slots=True)
class Work:
    """One cell's runs, in a process of their own."""

    cell: Cell
    rules: Rules
    trials: int
    seed: str

    def __call__(self) -> Sequence[Trial]:
        return anyio.run(self._run)

    async def _run(self) -> Sequence[Trial]:
        return await run_cell(self.cell, self.trials, self.seed, rules=self.rules, questions=str(self.cell.agents))


def judges(agents: int, same_wrong: float | None, *, slowest: int = 1) -> Cell:
    return Cell(WORLD, agents, Judging(SKILL, own_weight=OWN_WEIGHT, slowest=slowest, same_wrong=same_wrong))


# -- votes by substance against votes by wording ----------------------------------------------------------------------


def substance_work(trials: int, seed: str) -> list[Work]:
    return [Work(judges(agents, wrong), ONCE, trials, seed) for agents, wrong in product(TEAMS, MISREAD)]


def gain(trials: Sequence[Trial]) -> Estimate:
    """How much more often they were right than by the same votes counted by wording, ties going at random."""
    return Estimate.of([trial.right - trial.right_by_wording for trial in trials])


def substance_table(found: Sequence[Sequence[Trial]]) -> str:
    lines = [
        " n  votes counted by           right              gain               run-offs   random  calls",
        "-" * 92,
    ]
    for place, (agents, wrong) in enumerate(product(TEAMS, MISREAD)):
        trials = found[place]
        right = Estimate.of([float(trial.right) for trial in trials])
        if wrong is None:
            plain = Estimate.of([trial.right_by_wording for trial in trials])
            tied = fmean(trial.tied for trial in trials)
            figures = f"{plain}  {'':>16}  {'':>8} {tied:>8.1%}"
            lines.append(f"{agents:>2}  {'wording, ties at random':<24}  {figures}  {2 * agents + 1:>5.2f}")
        how = "wording, run-off" if wrong is None else f"substance, {wrong:.0%} wrong"
        more = gain(trials)
        shares = [fmean(trial.tied for trial in trials), fmean(trial.by_lot for trial in trials)]
        figures = f"{right}  {more.mean:+.4f} ± {more.within:.4f}  {shares[0]:>8.1%} {shares[1]:>8.1%}"
        lines.append(f"{agents:>2}  {how:<24}  {figures}  {fmean(trial.model_calls for trial in trials):>5.2f}")
    return "\n".join(lines)


# -- early decisions --------------------------------------------------------------------------------------------------

SLOWEST = 50
"""Calls of very different length, so that there is something to cut off when a decision is early."""
EARLY: tuple[tuple[str, Rules], ...] = (
    ("off", ONCE),
    ("proven, as by default", Rules()),
    ("proven, one answer each", Rules(max_answers=1)),
    ("majority", Rules(early_decision="majority")),
)


def early_work(trials: int, seed: str) -> list[Work]:
    return [
        Work(judges(agents, 0.05, slowest=SLOWEST), rules, trials, seed) for agents, (_, rules) in product(TEAMS, EARLY)
    ]


def early_table(found: Sequence[Sequence[Trial]]) -> str:
    lines = [" n  early_decision            decided early  calls made  cut off  right", "-" * 83]
    for (agents, (name, _)), trials in zip(product(TEAMS, EARLY), found, strict=True):
        early = sum(trial.winner.early for trial in trials)
        calls = fmean(trial.model_calls for trial in trials)
        cut = calls - fmean(trial.replies for trial in trials)
        right = Estimate.of([float(trial.right) for trial in trials])
        lines.append(f"{agents:>2}  {name:<24}  {early:>5} of {len(trials):<5}  {calls:>10.2f}  {cut:>7.2f}  {right}")
    return "\n".join(lines)


# -- lots -------------------------------------------------------------------------------------------------------------


def lots_work(trials: int, seed: str) -> list[Work]:
    return [Work(Cell(World(0.5), 2, Loyal()), ONCE, trials, seed)]


def lots_table(found: Sequence[Sequence[Trial]]) -> str:
    (trials,) = found
    first = Estimate.of([float(trial.winner.agent == "agent_a") for trial in trials])
    recorded = sum(trial.by_lot and trial.winner.drawn == ("agent1.1", "agent2.1") for trial in trials)
    return (
        f"the first agent won: {first}\n"
        f"told as tie_broken, with both answers recorded as drawn: {recorded} of {len(trials)}"
    )
