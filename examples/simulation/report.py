"""Simulated figures beside exact ones, and the two tables of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf, sqrt
from statistics import fmean, stdev

import anyio

from examples.simulation import exact
from examples.simulation.agents import Judging, Majority
from examples.simulation.trial import Cell, Trial, run_cell
from examples.simulation.world import World

BAND = 4.0
"""Standard errors within which a simulated figure must lie."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A simulated mean, its standard error, and what it should be."""

    simulated: float
    error: float
    exact: float

    @classmethod
    def of_events(cls, happened: Iterable[bool], probability: float) -> "Figure":
        """A frequency; its standard error is the one that the exact probability implies."""
        found = list(happened)
        return cls(fmean(found), sqrt(probability * (1 - probability) / len(found)), probability)

    @classmethod
    def of_shares(cls, shares: Iterable[float], mean: float) -> "Figure":
        """A mean of numbers, one per trial; its standard error is the sample's."""
        found = list(shares)
        return cls(fmean(found), stdev(found) / sqrt(len(found)), mean)

    @property
    def deviation(self) -> float:
        """In standard errors."""
        difference = self.simulated - self.exact
        if abs(difference) < 1e-9:
            return 0.0
        return difference / self.error if self.error else inf


@dataclass(frozen=True, slots=True)
class Row:
    """`figures` begins with the accuracy; judges add ties, votes for oneself and unanimous decisions."""

    cell: Cell
    figures: tuple[Figure, ...]


def majority_cells() -> list[Cell]:
    """An agent alone is as good as its p. With two options there is one way to be wrong, so c means nothing."""
    alone = [World(p, choices) for p, choices in product((0.6, 0.7, 0.8), (2, 4))]
    errors = product((0.6, 0.7, 0.8), ((2, 0.0), (4, 0.0), (4, 0.6)), (0.0, 0.3, 0.6))
    teams = [World(p, choices, c, rho) for p, (choices, c), rho in errors]
    return [
        *(Cell(world, 1, Majority()) for world in alone),
        *(Cell(world, agents, Majority()) for agents, world in product((3, 5, 7), teams)),
    ]


def judge_cells() -> list[Cell]:
    variants = product((0.6, 0.75, 0.9), (False, True), (False, True))
    return [Cell(World(0.7), 4, Judging(skill, authors, votes)) for skill, authors, votes in variants]


def measure(cell: Cell, trials: int, seed: str) -> Row:
    """Run a cell's trials in an event loop of their own."""
    return Row(cell, figures(cell, anyio.run(run_cell, cell, trials, seed)))


def figures(cell: Cell, trials: Sequence[Trial]) -> tuple[Figure, ...]:
    rights = [trial.right for trial in trials]
    if not isinstance(cell.voting, Judging):
        return (Figure.of_events(rights, exact.majority(cell.world, cell.agents)),)
    # All simulated calls take equally long, so the agents take turns in the same order in every trial.
    (order,) = {trial.voters for trial in trials}
    expected = exact.judges(cell.world, cell.voting, order)
    return (
        Figure.of_events(rights, expected.right),
        Figure.of_events((trial.tied for trial in trials), expected.tie),
        Figure.of_shares((trial.self_share for trial in trials), expected.self_votes),
        Figure.of_events((trial.unanimous for trial in trials), expected.unanimous),
    )


def majority_table(rows: Iterable[Row]) -> str:
    lines = [" n    p  options    c  rho  simulated       ±  closed form  deviation", "-" * 67]
    for row in rows:
        world, (accuracy,) = row.cell.world, row.figures
        setting = f"{row.cell.agents:>2} {world.p:>4.2f}  {world.choices:>7} {world.c:>4.1f} {world.rho:>4.1f}"
        lines.append(f"{setting}  {_accuracy(accuracy)}")
    return "\n".join(lines)


def judge_table(rows: Iterable[Row]) -> str:
    head = " n    p  skill  variant                simulated       ±  closed form  deviation"
    lines = [f"{head}          ties    self-votes     unanimous", "-" * 122]
    for row in rows:
        accuracy, *others = row.figures
        judging = row.cell.voting
        skill = f"{judging.skill:>5.2f}  {_variant(judging):<21}" if isinstance(judging, Judging) else ""
        shares = "  ".join(f"{other.simulated:>5.3f} ({other.exact:.3f})"[:13] for other in others)
        lines.append(f"{row.cell.agents:>2} {row.cell.world.p:>4.2f}  {skill}  {_accuracy(accuracy)}  {shares}")
    return "\n".join(lines)


def _accuracy(figure: Figure) -> str:
    return f"{figure.simulated:>9.4f}  {figure.error:.4f}  {figure.exact:>11.4f}  {figure.deviation:>+9.2f}"


def _variant(judging: Judging) -> str:
    shown = [name for name, on in (("authors", judging.authors_shown), ("votes", judging.votes_visible)) if on]
    return f"{' + '.join(shown)} shown" if shown else "as the product"
