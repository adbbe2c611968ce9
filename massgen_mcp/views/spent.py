"""What model calls used and cost: the sums, and how they are told."""

from dataclasses import dataclass
from typing import Any

from massgen_mcp.events import Cost, Usage


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

    def add_reply(self, usage: Usage | None, cost: Cost, seconds: float) -> None:
        self.calls += 1
        self.calls_without_usage += usage is None or usage.estimated
        self.seconds += seconds
        self._add(usage or Usage(), cost)

    def add_lost(self, usage: Usage, cost: Cost) -> None:
        self.lost_calls += 1
        self._add(usage, cost)

    def _add(self, usage: Usage, cost: Cost) -> None:
        self.input_tokens += usage.input_tokens
        self.cached_input_tokens += usage.cached_input_tokens
        self.cache_write_tokens += usage.cache_write_tokens
        self.output_tokens += usage.output_tokens
        self.reasoning_tokens += usage.reasoning_tokens
        self.usd += cost.usd or 0.0
        self.unpriced_calls += cost.usd is None


def spent_json(spent: Spent) -> dict[str, Any]:
    """The sums as `status.json` and the records tell them. `cost` is in US dollars, null where nothing is known."""
    return {
        "calls": spent.calls,
        "tokens": spent.tokens,
        "input_tokens": spent.input_tokens,
        "cached_input_tokens": spent.cached_input_tokens,
        "cache_write_tokens": spent.cache_write_tokens,
        "output_tokens": spent.output_tokens,
        "reasoning_tokens": spent.reasoning_tokens,
        "calls_without_usage": spent.calls_without_usage,
        "lost_calls": spent.lost_calls,
        "cost": spent.rounded_usd,
        "unpriced_calls": spent.unpriced_calls,
        "latency": round(spent.seconds, 3),
    }


def spent_text(spent: Spent) -> str:
    """The same for people: `$0.0412 for 7 calls, 12,345 tokens`, and what is not known."""
    calls = spent.calls + spent.lost_calls
    money = "price unknown" if spent.known_usd is None else dollars(spent.known_usd)
    unknown = f" ({spent.unpriced_calls} of them of unknown price)" if spent.unpriced_calls < calls else ""
    told = unknown if spent.unpriced_calls else ""
    return f"{money} for {calls} call{'' if calls == 1 else 's'}{told}, {spent.tokens:,} tokens"


def dollars(usd: float) -> str:
    """Enough digits that nothing looks free: `$1.25`, `$0.0412`, `$0.000018`."""
    return f"${usd:.2f}" if usd >= 1 or usd == 0 else f"${usd:.2g}" if usd < 0.001 else f"${usd:.4f}"
