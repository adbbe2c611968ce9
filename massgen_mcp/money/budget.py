"""A run's budget: what may be spent and what has been, as a fold over its events, so that it survives a resume.

Pure: knows no reservations (see `money.reservations`), no models and no clocks. A call of unknown price counts with its
tokens only.
"""

import math
from dataclasses import dataclass, replace

from massgen_mcp.events import (
    BudgetMark,
    BudgetRaised,
    BudgetReached,
    Cost,
    Event,
    ModelCallAborted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelReplied,
    Usage,
)

MARKS = (50, 75, 90)
"""Percent of the budget at which a run says so."""


@dataclass(frozen=True, slots=True)
class Budget:
    """`usd` and `tokens` are spent. Without bounds nothing ever runs out."""

    max_usd: float = math.inf
    max_tokens: float = math.inf
    usd: float = 0.0
    tokens: int = 0
    announced: int = 0
    """The highest mark that has been told."""
    reached: bool = False
    """The run has been told to come to its end with what it has."""

    @property
    def share(self) -> float:
        """How much of the budget is gone, of money or of tokens, whichever is more."""
        return max(self.usd / self.max_usd, self.tokens / self.max_tokens)

    @property
    def due_marks(self) -> tuple[int, ...]:
        """Marks that have been passed and not told."""
        return tuple(mark for mark in MARKS if self.announced < mark <= self.share * 100)

    def raised(self, max_usd: float) -> "Budget":
        """With a new bound of money; the bound of tokens grows in the same proportion."""
        tokens = self.max_tokens * max_usd / self.max_usd if math.isfinite(self.max_usd) else self.max_tokens
        larger = replace(self, max_usd=max_usd, max_tokens=tokens, reached=False, announced=0)
        return replace(larger, announced=max((mark for mark in MARKS if mark <= larger.share * 100), default=0))

    def after(self, event: Event) -> "Budget":
        match event:
            case ModelReplied() | ModelCallFailed() | ModelCallAborted() | ModelCallRetried() | ModelCallStarted():
                return self._billed(event.usage, event.cost)
            case BudgetMark():
                return replace(self, announced=event.percent)
            case BudgetReached():
                return replace(self, reached=True)
            case BudgetRaised():
                return self.raised(event.max_usd)
            case _:
                return self

    def _billed(self, usage: Usage | None, cost: Cost | None) -> "Budget":
        if usage is None and cost is None:
            return self
        usd = (cost.usd if cost else None) or 0.0
        return replace(self, usd=self.usd + usd, tokens=self.tokens + (usage.tokens if usage else 0))
