"""How time, tokens and money are told."""

import math
from decimal import Decimal
from typing import Any

from massgen_mcp.events.parts import Spent
from massgen_mcp.events.run import BudgetCap
from massgen_mcp.money.budget import format_bound_note
from massgen_mcp.run_state.state import RunState

LEAST_SAVED_USD = 0.01
"""Less than this is not worth a word."""


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
        "partly_counted_calls": spent.partly_counted_calls,
        "lost_calls": spent.lost_calls,
        "cost": spent.rounded_usd,
        "saved_by_cache": round(spent.saved_usd, 9),
        "unpriced_calls": spent.unpriced_calls,
        "estimated_calls": spent.estimated_calls,
        "bounded_calls": spent.bounded_calls,
        "latency": round(spent.seconds, 3),
    }


def spent_text(spent: Spent) -> str:
    """The same for people: `$0.0412 for 7 calls, 12,345 tokens`, and what is not known."""
    calls = spent.calls + spent.lost_calls
    money = _format_money(spent)
    unknown = f" ({spent.unpriced_calls} of them at an unknown price)" if spent.unpriced_calls < calls else ""
    unpriced = unknown if spent.unpriced_calls else ""
    sources = {"estimates": spent.estimated_calls, "upper limits": spent.bounded_calls}
    known_as = " and ".join(source for source, calls_of_it in sources.items() if calls_of_it)
    estimate = f"; the cost includes {known_as}" if known_as else ""
    saved = ""
    if spent.saved_usd >= LEAST_SAVED_USD:
        saved = f"; prompt caches saved {dollars(spent.saved_usd)}"
    how = "about " if _is_about(spent) else "at least " if spent.partly_counted_calls else ""
    return (
        f"{money} for {calls} call{'' if calls == 1 else 's'}{unpriced}, {how}{spent.tokens:,} tokens{estimate}{saved}"
    )


def _format_money(spent: Spent) -> str:
    if spent.is_free:
        return "free"
    return "price unknown" if spent.known_usd is None else dollars(spent.known_usd)


def _is_about(spent: Spent) -> bool:
    """Whether some of its tokens are our estimate."""
    return bool(spent.calls_without_usage or spent.lost_calls)


def dollars(usd: float) -> str:
    """Enough digits that nothing looks free: `$1.25`, `$0.0412`, `$0.000018`."""
    if usd >= 1 or usd == 0:
        return f"${usd:.2f}"
    return f"${Decimal(f'{usd:.2g}'):f}" if usd < 0.001 else f"${usd:.4f}"


def money_notes(run: RunState) -> list[str]:
    """What the sums alone do not tell about the budget."""
    notes: list[str] = []
    if run.budget_reached:
        money = f"{dollars(run.spent.usd)} of max_usd {run.budget.max_usd:g}"
        amounts: dict[BudgetCap, str] = {
            "max_usd": money,
            "max_tokens": f"{run.budget.used_tokens:,} tokens of max_tokens {run.budget.max_tokens:,.0f}",
            "max_calls": f"{run.spent.unpriced_calls:,} calls of max_calls {run.budget.max_calls:,.0f}",
        }
        notes.append(f"The run reached its budget: {amounts[run.budget.reached]}.")
    if run.max_usd is not None and (unpriced := run.spent.unpriced_calls):
        calls = "" if math.isinf(run.budget.max_calls) else f"max_calls ({run.budget.max_calls:,.0f}) and "
        notes.append(
            f"{unpriced} calls have no known price, so they count towards {calls}max_tokens, not towards max_usd."
        )
    if run.end is None:
        notes += [f"{agent.budget_wait}." for agent in run.agents.values() if agent.budget_wait]
    notes += [format_bound_note(model, bound) for model, bound in run.budget.spending.bounds.items()]
    if estimated := run.spent.estimated_calls:
        notes.append(
            f"The cost of {estimated} calls is an estimate: they went through a gateway, and massgen used the "
            "model makers' list prices. For exact costs, set `price_as` or `price` in the config."
        )
    return notes


def clock(seconds: float) -> str:
    """01:15, or 1:02:03 from an hour on."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def count(number: int) -> str:
    """850, 3.1k, 37k, 1.2M."""
    if number < 1000:
        return str(number)
    thousands = number / 1000
    if thousands < 1000:
        return f"{thousands:.1f}k" if thousands < 10 else f"{thousands:.0f}k"
    return f"{thousands / 1000:.1f}M"


def spent_figures(spent: Spent) -> list[str]:
    """Money, as far as prices are known, and tokens; nothing before the first call is paid for."""
    if not spent.tokens:
        return []
    about, more = "~" if _is_about(spent) else "", "+" if spent.partly_counted_calls else ""
    return [cost_of(spent), f"{about}{count(spent.tokens)}{more} tokens"]


def cost_of(spent: Spent) -> str:
    """`$0.0412`, with `~` for an estimate, and a plus if some of it is of unknown price, which is never shown as
    nothing.
    """
    if spent.is_free:
        return "free"
    if spent.known_usd is None:
        return "cost n/a"
    about, more = "~" if spent.estimated_calls else "", "+" if spent.unpriced_calls else ""
    about = f"at most {about}" if spent.bounded_calls and not spent.unpriced_calls else about
    return f"{about}{dollars(spent.known_usd)}{more}"
