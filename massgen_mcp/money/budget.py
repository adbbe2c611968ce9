"""A run's budget: what may be spent, and how far that is gone, as a part of the fold over the run's events, so that it
survives a resume.

What has been spent is summed up in `money.spending`. Pure: knows no reservations (see `money.reservations`), no models
and no clocks. A call of unknown price counts with its tokens only.
"""

import math
from dataclasses import dataclass, field

from massgen_mcp.events.parts import Spent
from massgen_mcp.events.run import BudgetMark, BudgetRaised, NestedRunEnded, NestedRunStarted, RunStarted
from massgen_mcp.money.spending import Spending

BudgetEvent = RunStarted | BudgetMark | BudgetRaised | NestedRunStarted | NestedRunEnded
"""What the state of a run has its budget fold in."""
MARKS = (50, 75, 90)
"""Percent of the budget at which a run says so."""


@dataclass
class Budget:
    """Without bounds nothing ever runs out. Mutable while being folded; treat it as read-only."""

    max_usd: float = math.inf
    max_tokens: float = math.inf
    spending: Spending = field(default_factory=Spending)
    announced: int = 0
    """The highest mark that has been told."""
    set_aside: dict[str, tuple[float, int]] = field(default_factory=dict[str, tuple[float, int]])
    """Money and tokens that nested runs may still spend, by their ids, as long as they go on."""

    @property
    def spent(self) -> Spent:
        return self.spending.total

    @property
    def free(self) -> tuple[float, float]:
        """Money and tokens that are neither spent nor set aside for nested runs."""
        aside = self.set_aside.values()
        usd = self.max_usd - self.spent.usd - sum(usd for usd, _ in aside)
        return usd, self.max_tokens - self.spent.tokens - sum(tokens for _, tokens in aside)

    @property
    def share(self) -> float:
        """How much of the budget is gone, of money or of tokens, whichever is more."""
        parts = ((self.spent.usd, self.max_usd), (self.spent.tokens, self.max_tokens))
        return max(spent / most if most else 1.0 for spent, most in parts)

    @property
    def due_marks(self) -> tuple[int, ...]:
        """Marks that have been passed and not told."""
        return tuple(mark for mark in MARKS if self.announced < mark <= self.share * 100)

    def apply(self, event: BudgetEvent) -> None:
        """Fold one more event in."""
        match event:
            case RunStarted():
                self.max_usd = self.max_usd if event.max_usd is None else event.max_usd
                self.max_tokens = self.max_tokens if event.max_tokens is None else event.max_tokens
            case BudgetMark():
                self.announced = event.percent
            case BudgetRaised():
                self._raise(event.max_usd)
            case NestedRunStarted():
                self.set_aside[event.run_id] = (event.max_usd, event.max_tokens)
            case NestedRunEnded():
                self.set_aside.pop(event.run_id, None)
                self.spending.add_nested(event)

    def _raise(self, max_usd: float) -> None:
        """A new bound of money; the bound of tokens grows in the same proportion."""
        if math.isfinite(self.max_usd):
            self.max_tokens = self.max_tokens * max_usd / self.max_usd
        self.max_usd = max_usd
        self.announced = max((mark for mark in MARKS if mark <= self.share * 100), default=0)
