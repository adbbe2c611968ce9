"""What a run has spent: the sums over its model calls, in all, by agent and by model.

The one owner of these sums: the budget compares with them, every view tells them.
"""

from dataclasses import asdict, dataclass, field

from massgen_mcp.events.agent_work import LostTry, ModelCallStarted, ModelReplied
from massgen_mcp.events.parts import Cost, NestedSpending, Usage
from massgen_mcp.events.run import NestedRunEnded


@dataclass
class Spent:
    """Whole replies, their tokens and time; tokens and money of tries without a reply are in the sums, too.

    `usd` is the known part. A call of which nobody knows the price is in `unpriced_calls`, and not in `usd`.
    """

    calls: int = 0
    calls_without_usage: int = 0
    """Their tokens are our estimate."""
    lost_calls: int = 0
    """Tries that had to be paid for and brought no reply: cut off by us, or broken in the middle. All estimated."""
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    usd: float = 0.0
    unpriced_calls: int = 0
    estimated_calls: int = 0
    """Their price is the model's own provider's, and not that of the gateway which was asked."""
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def known_usd(self) -> float | None:
        """None when calls were made and the price of none is known."""
        priced = self.calls + self.lost_calls > self.unpriced_calls
        return self.usd if priced or not self.unpriced_calls else None

    @property
    def rounded_usd(self) -> float | None:
        """`known_usd` without the noise of adding up; nothing that anybody bills is lost."""
        return None if self.known_usd is None else round(self.known_usd, 9)

    def add(self, usage: Usage, cost: Cost, seconds: float | None) -> None:
        """What a reply that took `seconds` cost; None: a try that brought none."""
        self.calls += seconds is not None
        self.lost_calls += seconds is None
        self.seconds += seconds or 0.0
        self.input_tokens += usage.input_tokens
        self.cached_input_tokens += usage.cached_input_tokens
        self.cache_write_tokens += usage.cache_write_tokens
        self.output_tokens += usage.output_tokens
        self.reasoning_tokens += usage.reasoning_tokens
        self.usd += cost.usd or 0.0
        self.unpriced_calls += cost.usd is None
        self.estimated_calls += cost.source == "estimate"

    def include(self, other: NestedSpending) -> None:
        """What a nested run spent, as a part of this sum."""
        for name in NestedSpending.model_fields:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def as_nested(self) -> NestedSpending:
        """This sum as the run that it is nested in hears of it."""
        return NestedSpending.model_validate(asdict(self))


@dataclass
class Spending:
    """`by_model`: the model as the provider reported it, for lost tries the configured one."""

    total: Spent = field(default_factory=Spent)
    by_agent: dict[str, Spent] = field(default_factory=dict[str, Spent])
    by_model: dict[str, Spent] = field(default_factory=dict[str, Spent])
    nested: Spent = field(default_factory=Spent)
    """What runs nested in this one spent: a part of `total`, and of nobody's share in the other two."""

    def add_reply(self, event: ModelReplied) -> None:
        for spent in self._sums(event.agent, event.model):
            spent.calls_without_usage += event.usage is None or event.usage.estimated
            spent.add(event.usage or Usage(), event.cost, event.seconds)

    def add_lost(self, event: LostTry, model: str) -> None:
        """What a try without a reply has to be paid for, if anything. `model`: the configured one."""
        self._add_lost(event.agent, event.usage, event.cost, model)

    def add_lost_call(self, event: ModelCallStarted, model: str) -> None:
        """What a call has to be paid for whose process was lost before it ended; once for each such loss."""
        self._add_lost(event.agent, event.usage_if_lost, event.cost_if_lost, model)

    def add_nested(self, event: NestedRunEnded) -> None:
        self.total.include(event.spent)
        self.nested.include(event.spent)

    def _add_lost(self, agent: str, usage: Usage | None, cost: Cost | None, model: str) -> None:
        if usage is not None and cost is not None:
            for spent in self._sums(agent, model):
                spent.add(usage, cost, None)

    def _sums(self, agent: str, model: str) -> tuple[Spent, Spent, Spent]:
        return self.total, self.by_agent.setdefault(agent, Spent()), self.by_model.setdefault(model, Spent())
