"""What a provider counted, made usable: integers within bounds, or nothing. Every wire reads its usage through here.

A server may send anything in place of a number. What is no number of tokens, or no sum of money, is as good as not
sent: it is never an error, because the reply was paid for, and never 0, because 0 would be a price. Knows no prices.
"""

import math
import re
from collections.abc import Mapping
from typing import cast

from massgen_mcp.backends.base import UsagePart
from massgen_mcp.backends.wiretext import clean
from massgen_mcp.config.providers.catalog import CostField

MAX_TOKENS = 100_000_000
"""No model reads or writes more in one call."""
MAX_USD = 100_000.0
"""No call costs more."""
_DIGITS = re.compile(r"[0-9]{1,12}")
TICKS = 10_000_000_000
"""So many of xAI's units are a dollar."""


def count(value: object) -> int | None:
    """A number of tokens, a broken one rounded up; None for everything else."""
    number = _number(value, MAX_TOKENS)
    return None if number is None else math.ceil(number)


def money(value: object, *, unit: float = 1.0) -> float | None:
    """A sum in US dollars, told in units of so many to the dollar; None for what can be no such sum."""
    number = _number(value, MAX_USD * unit)
    return None if number is None else number / unit


def _number(value: object, most: float) -> float | None:
    """A number between 0 and `most`. Compared before it is converted: an integer may be too large for a float."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)  # some servers quote their numbers
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= most else None


def member(value: object, *path: str) -> object:
    """What stands in `value` at this path, in objects of an SDK and in mappings; None where nothing does."""
    for name in path:
        value = (
            cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        )
    return value


def usage_part(
    model: object,
    *,
    read: int | None,
    written: int | None,
    cached: int | None = None,
    cache_written: int | None = None,
    reasoning: int | None = None,
    searches: int | None = None,
    cost_usd: float | None = None,
) -> UsagePart:
    """The counts of one call; a part is never more than its whole, where that is known."""
    most_read, most_written = (MAX_TOKENS if whole is None else whole for whole in (read, written))
    cached = min(cached or 0, most_read)
    return UsagePart(
        input_tokens=read,
        cached_input_tokens=cached,
        output_tokens=written,
        reasoning_tokens=min(reasoning or 0, most_written),
        model=clean(model) if isinstance(model, str) else "",
        cache_write_tokens=min(cache_written or 0, most_read - cached),
        web_searches=searches or 0,
        cost_usd=cost_usd,
    )


def chat_usage(usage: object, model: object, cost_field: CostField | None) -> UsagePart:
    """The usage of Chat Completions."""
    read = count(member(usage, "prompt_tokens"))
    reasoning = count(member(usage, "completion_tokens_details", "reasoning_tokens"))
    written = count(member(usage, "completion_tokens"))
    return usage_part(
        model,
        read=read,
        written=written_tokens(read, written, count(member(usage, "total_tokens")), reasoning),
        cached=count(member(usage, "prompt_tokens_details", "cached_tokens")),
        cache_written=count(member(usage, "prompt_tokens_details", "cache_write_tokens")),
        reasoning=reasoning,
        cost_usd=reported_usd(usage, cost_field),
    )


def written_tokens(read: int | None, written: int | None, total: int | None, reasoning: int | None) -> int | None:
    """All tokens that the model wrote. OpenAI counts reasoning among them; xAI and Gemini only in the total."""
    if total and read is not None:
        return max(written or 0, total - read)
    if written is None or reasoning is None:
        return written
    return written + reasoning if reasoning > written else written


def reported_usd(usage: object, cost_field: CostField | None) -> float | None:
    """What a provider says in its usage that the call cost; None where it says nothing that can be a sum of money."""
    cost = member(usage, cost_field) if cost_field else None
    if cost_field == "cost_in_usd_ticks":
        return money(cost, unit=TICKS)
    charged = money(cost)
    if charged is None:
        return None
    # With a key of the user's own OpenRouter charges a fee, and the model's provider bills the rest.
    upstream = member(usage, "cost_details", "upstream_inference_cost") if member(usage, "is_byok") else None
    return charged + (money(upstream) or 0.0)
