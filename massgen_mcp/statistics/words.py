"""How figures of many runs are told: money of which something is unknown, and shares of few."""

from collections.abc import Mapping
from typing import Any, cast, get_args

from pydantic import BaseModel

from massgen_mcp.run_state.status import TERMINAL_STATES, RunStatus
from massgen_mcp.statistics.sums import Money, Share, Statistics
from massgen_mcp.views.spent import dollars

SMALL = 5
"""A share of fewer is told without percents."""


def share_text(share: Share, what: str = "") -> str:
    """`3 of 10 votes (11 to 60 %)`: the interval in which it lies in truth, with 95 %."""
    text = f"{share.count:,} of {share.of:,}" + (f" {what}" if what else "")
    if share.of < SMALL or share.low is None or share.high is None:
        return text
    return f"{text} ({100 * share.low:.0f} to {100 * share.high:.0f} %)"


def money_text(money: Money) -> str:
    """`$12.40+`: with `~` where some of it is an estimate, with a plus where some of it is unknown."""
    if money.usd is None:
        return "cost n/a"
    return f"{'~' if money.estimated else ''}{dollars(money.usd)}{'+' if money.unknown else ''}"


def counts_text(counts: Mapping[str, int]) -> str:
    """`30 completed, 2 timed out`, the most first."""
    ordered = sorted(counts.items(), key=lambda one: -one[1])
    return ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in ordered)


def as_worded(statistics: Statistics) -> dict[str, Any]:
    """The statistics as data for a page: every share and every amount of money has its words (`told`) with it.
    `states`: those in which a run can end, in the order in which they are shown.
    """
    worded: dict[str, Any] = _worded(statistics)
    return {**worded, "states": [state for state in get_args(RunStatus) if state in TERMINAL_STATES]}


def _worded(value: object) -> Any:  # noqa: ANN401 - JSON
    match value:
        case Share():
            return {**value.model_dump(mode="json"), "told": share_text(value)}
        case Money():
            return {**value.model_dump(mode="json"), "told": money_text(value)}
        case BaseModel():
            return {name: _worded(getattr(value, name)) for name in type(value).model_fields}
        case tuple():
            return [_worded(one) for one in cast("tuple[object, ...]", value)]
        case dict():
            return {key: _worded(one) for key, one in cast("dict[str, object]", value).items()}
        case _:
            return value
