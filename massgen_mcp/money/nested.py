"""What a nested run may spend of the budget of the run that starts it. Pure."""

from dataclasses import dataclass

from massgen_mcp.config.models.orchestrator import NestedConfig
from massgen_mcp.money.budget import Budget

LEAST_TOKENS = 1_000
"""With less than this no model can be asked."""


@dataclass(frozen=True, slots=True)
class Caps:
    """US dollars and tokens, at most."""

    usd: float
    tokens: int


def left_for_nested(budget: Budget, nested: NestedConfig) -> Caps:
    """What is left of the share of nested runs: what those that go on may still spend is gone for the others."""
    aside = budget.set_aside.values()
    spent = budget.spending.nested
    usd = budget.max_usd * nested.share_of_budget - spent.usd - sum(usd for usd, _ in aside)
    tokens = budget.max_tokens * nested.share_of_budget - spent.tokens - sum(tokens for _, tokens in aside)
    return Caps(max(0.0, usd), max(0, int(min(tokens, 1 << 53))))


def caps_of_next(
    budget: Budget, nested: NestedConfig, started: int, free: tuple[float, float], wanted_usd: float | None
) -> Caps | None:
    """The caps of the next nested run; None where too little is left.

    What is left of the share is divided evenly among the runs that may still be started, unless `wanted_usd` says how
    much money it should be; for a larger part of the money there are as many more tokens. `started`: how many were;
    `free`: money and tokens of the budget that nothing is set aside for.
    """
    left = left_for_nested(budget, nested)
    even = 1 / max(1, nested.max_runs - started)
    part = even if wanted_usd is None or left.usd <= 0 else min(1.0, wanted_usd / left.usd)
    usd, tokens = min(left.usd * part, free[0]), int(min(left.tokens * max(part, even), free[1]))
    return Caps(usd, tokens) if usd > 0 and tokens >= LEAST_TOKENS else None
