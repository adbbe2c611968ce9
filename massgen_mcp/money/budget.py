"""A run's budget: what is spent, what may be, and how far that is gone, as a part of the fold over the run's events, so
that it survives a resume; and how much of it a nested run may spend.

The one owner of these sums: every view tells them. Pure: knows no reservations (see `money.reservations`), no models
and no clocks. A call without any price counts with its tokens only.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from massgen_mcp.events.agent_work import LostTry, ModelCallStarted, ModelReplied
from massgen_mcp.events.parts import Cost, PriceBound, Spent, Usage
from massgen_mcp.events.run import (
    BudgetCap,
    BudgetMark,
    BudgetRaised,
    BudgetReached,
    NestedRunEnded,
    NestedRunStarted,
    RunStarted,
)

if TYPE_CHECKING:
    from massgen_mcp.config.models.orchestrator import NestedConfig  # the state of a run needs no config

BudgetEvent = RunStarted | BudgetMark | BudgetReached | BudgetRaised | NestedRunStarted | NestedRunEnded
"""What the state of a run has its budget fold in."""
MARKS = (50, 75, 90)
"""Percent of the budget at which a run says so."""
LEAST_TOKENS = 1_000
"""With less than this no model can be asked."""
MOST = 1 << 53
"""The number that stands for no bound where a whole number is written down."""


class Amounts(NamedTuple):
    """US dollars, tokens, and calls without a price, in the order of the caps."""

    usd: float = 0.0
    tokens: float = 0
    calls: float = 0

    def plus(self, other: "Amounts") -> "Amounts":
        return Amounts(self.usd + other.usd, self.tokens + other.tokens, self.calls + other.calls)

    def minus(self, other: "Amounts") -> "Amounts":
        return Amounts(self.usd - other.usd, self.tokens - other.tokens, self.calls - other.calls)

    def scale(self, share: float) -> "Amounts":
        return Amounts(self.usd * share, self.tokens * share, self.calls * share)

    def is_within(self, room: "Amounts") -> bool:
        return self.usd <= room.usd and self.tokens <= room.tokens and (not self.calls or self.calls <= room.calls)


def add_amounts(amounts: Iterable[Amounts]) -> Amounts:
    return reduce(Amounts.plus, amounts, Amounts())


@dataclass
class Spending:
    """The sums over a run's model calls. `by_model`: the model as the provider reported it, for lost tries the
    configured one.
    """

    total: Spent = field(default_factory=Spent)
    by_agent: dict[str, Spent] = field(default_factory=dict[str, Spent])
    by_model: dict[str, Spent] = field(default_factory=dict[str, Spent])
    bounds: dict[str, PriceBound] = field(default_factory=dict[str, PriceBound])
    """Of the models whose calls are counted at the highest known price."""
    nested: Spent = field(default_factory=Spent)
    """What runs nested in this one spent: a part of `total`, and of nobody's share in the other two."""

    def add_reply(self, event: ModelReplied) -> None:
        uncounted = event.usage is None or event.usage.estimated
        usage = event.usage or Usage()
        spent = _spent(usage, event.cost, calls=1, calls_without_usage=int(uncounted), seconds=event.seconds)
        self._add(event.agent, event.model, spent)

    def add_lost(self, event: LostTry, model: str) -> None:
        """What a try without a reply has to be paid for, if anything. `model`: the configured one."""
        self._add_lost(event.agent, event.usage, event.cost, model)

    def add_lost_call(self, event: ModelCallStarted, model: str) -> None:
        """What a call has to be paid for whose process was lost before it ended; once for each such loss."""
        self._add_lost(event.agent, event.usage_if_lost, event.cost_if_lost, model)

    def note_bound(self, event: ModelCallStarted, model: str) -> None:
        """Keep at which price the model is counted, if its own is unknown."""
        if event.cost_if_lost is not None and event.cost_if_lost.bound is not None:
            self.bounds[model] = event.cost_if_lost.bound

    def add_nested(self, event: NestedRunEnded) -> None:
        self.total += event.spent
        self.nested += event.spent

    def _add_lost(self, agent: str, usage: Usage | None, cost: Cost | None, model: str) -> None:
        if usage is not None and cost is not None:
            self._add(agent, model, _spent(usage, cost, lost_calls=1))

    def _add(self, agent: str, model: str, spent: Spent) -> None:
        self.total += spent
        self.by_agent[agent] = self.by_agent.get(agent, Spent()) + spent
        self.by_model[model] = self.by_model.get(model, Spent()) + spent


def _spent(
    usage: Usage,
    cost: Cost,
    *,
    calls: int = 0,
    calls_without_usage: int = 0,
    lost_calls: int = 0,
    seconds: float = 0.0,
) -> Spent:
    """What one try cost."""
    return Spent(
        calls=calls,
        calls_without_usage=calls_without_usage,
        partly_counted_calls=int(usage.at_least),
        lost_calls=lost_calls,
        input_tokens=usage.input_tokens,
        cached_input_tokens=usage.cached_input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        usd=cost.usd or 0.0,
        saved_usd=cost.saved_usd,
        discounted_tokens=cost.discounted_tokens,
        unpriced_calls=int(cost.usd is None),
        estimated_calls=int(cost.source == "estimate"),
        bounded_calls=int(cost.source == "bound"),
        free_calls=int(cost.source == "free"),
        seconds=seconds,
    )


@dataclass
class Budget:
    """Without bounds nothing ever runs out. Mutable while being folded; treat it as read-only."""

    max_usd: float = math.inf
    max_tokens: float = math.inf
    max_calls: float = math.inf
    """Of calls without a price."""
    weighs_cache: bool = False
    """Whether cached input counts for `max_tokens` by its price."""
    spending: Spending = field(default_factory=Spending)
    announced: int = 0
    """The highest mark that has been told."""
    reached: BudgetCap = "max_usd"
    """The cap that was reached, if one was."""
    set_aside: dict[str, Amounts] = field(default_factory=dict[str, Amounts])
    """The amounts that nested runs may still spend, by their ids, as long as they go on."""

    @property
    def spent(self) -> Spent:
        return self.spending.total

    @property
    def used_tokens(self) -> int:
        """Tokens that count for `max_tokens`."""
        return self._count_tokens(self.spent)

    def _count_tokens(self, spent: Spent) -> int:
        return spent.tokens - spent.discounted_tokens * self.weighs_cache

    @property
    def caps(self) -> Amounts:
        return Amounts(self.max_usd, self.max_tokens, self.max_calls)

    @property
    def used(self) -> Amounts:
        """Everything that is spent, as it counts for the caps."""
        return self.count(self.spent)

    def count(self, spent: Spent) -> Amounts:
        return Amounts(spent.usd, self._count_tokens(spent), spent.unpriced_calls)

    @property
    def free(self) -> Amounts:
        """The amounts that are neither spent nor set aside for nested runs."""
        return self.caps.minus(self.used).minus(add_amounts(self.set_aside.values()))

    @property
    def share(self) -> float:
        """How much of the budget is gone, of money, tokens or calls, whichever is more."""
        return max(self._get_shares(Amounts()).values())

    def choose_cap(self, further: Amounts) -> BudgetCap:
        """Return the cap of which more is gone than of others when these amounts are spent in addition."""
        shares = self._get_shares(further)
        return max(shares, key=lambda cap: shares[cap])

    def _get_shares(self, further: Amounts) -> dict[BudgetCap, float]:
        used, caps = self.used.plus(further), self.caps
        return {
            "max_usd": _get_share(used.usd, caps.usd, least=1.0),
            "max_tokens": _get_share(used.tokens, caps.tokens, least=1.0),
            "max_calls": _get_share(used.calls, caps.calls, least=used.calls),
        }

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
                self.max_calls = math.inf
                if event.max_calls is not None:
                    self.max_calls = event.max_calls
                self.weighs_cache = event.weighs_cache
            case BudgetMark():
                self.announced = event.percent
            case BudgetReached():
                self.reached = event.cap
            case BudgetRaised():
                self._raise(event.max_usd)
            case NestedRunStarted():
                self.set_aside[event.run_id] = Amounts(event.max_usd, event.max_tokens, event.max_calls)
            case NestedRunEnded():
                self.set_aside.pop(event.run_id, None)
                self.spending.add_nested(event)

    def _raise(self, max_usd: float) -> None:
        """Set a new bound of money; those of tokens and calls grow in the same proportion."""
        if math.isfinite(self.max_usd):
            self.max_tokens = self.max_tokens * max_usd / self.max_usd
            self.max_calls = self.max_calls * max_usd / self.max_usd
        self.max_usd = max_usd
        self.announced = max((mark for mark in MARKS if mark <= self.share * 100), default=0)


def _get_share(used: float, cap: float, *, least: float) -> float:
    """Return how much of a cap is used; `least` of one that allows nothing."""
    if not cap:
        return least
    return used / cap


@dataclass(frozen=True, slots=True)
class Caps:
    """US dollars, tokens, and calls without a price, at most."""

    usd: float
    tokens: int
    calls: int

    @property
    def amounts(self) -> Amounts:
        return Amounts(self.usd, self.tokens, self.calls)


def left_for_nested(budget: Budget, nested: "NestedConfig") -> Caps:
    """Return what is left of the share of nested runs: the caps of those that go on are gone for the others."""
    share = budget.caps.scale(nested.share_of_budget)
    left = share.minus(budget.count(budget.spending.nested)).minus(add_amounts(budget.set_aside.values()))
    return Caps(max(0.0, left.usd), *(max(0, int(min(number, MOST))) for number in (left.tokens, left.calls)))


def caps_of_next(
    budget: Budget, nested: "NestedConfig", started: int, free: Amounts, wanted_usd: float | None
) -> Caps | None:
    """The caps of the next nested run; None where too little is left.

    What is left of the share is divided evenly among the runs that may still be started, unless `wanted_usd` says how
    much money it should be; for a larger part of the money there are as many more tokens and calls. `started`: how many
    were; `free`: the amounts of the budget that nothing is set aside for.
    """
    left = left_for_nested(budget, nested)
    even = 1 / max(1, nested.max_runs - started)
    part = even if wanted_usd is None or left.usd <= 0 else min(1.0, wanted_usd / left.usd)
    usd, tokens = min(left.usd * part, free.usd), int(min(left.tokens * max(part, even), free.tokens))
    calls = max(0, int(min(left.calls * max(part, even), free.calls)))
    return Caps(usd, tokens, calls) if usd > 0 and tokens >= LEAST_TOKENS else None


def format_bound_note(model: str, bound: PriceBound) -> str:
    """Return at which price the calls of a model of unknown price are counted, and which keys change that."""
    return (
        f"The price of {model} is unknown, so massgen counts its calls at {bound}. Set the right price with "
        "`price` or `price_as` in its backend, or limit tokens with `max_tokens` under `budget`."
    )
