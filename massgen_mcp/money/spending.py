"""What a run has spent: the sums over its model calls, in all, by agent and by model.

The one owner of these sums: the budget compares with them, every view tells them.
"""

from dataclasses import dataclass, field

from massgen_mcp.events.agent_work import LostTry, ModelCallStarted, ModelReplied
from massgen_mcp.events.parts import Cost, Spent, Usage
from massgen_mcp.events.run import NestedRunEnded


@dataclass
class Spending:
    """`by_model`: the model as the provider reported it, for lost tries the configured one."""

    total: Spent = field(default_factory=Spent)
    by_agent: dict[str, Spent] = field(default_factory=dict[str, Spent])
    by_model: dict[str, Spent] = field(default_factory=dict[str, Spent])
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
        unpriced_calls=int(cost.usd is None),
        estimated_calls=int(cost.source == "estimate"),
        seconds=seconds,
    )
