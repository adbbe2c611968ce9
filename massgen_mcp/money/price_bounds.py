"""The bound of a price that the list does not know: the highest known price of the model's family, else of its
provider, else of the whole list.

A family is the name without version, date and size: `gpt-sol` of `gpt-6.2-sol`, `claude-opus` of `claude-opus-4-5`.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from massgen_mcp.events.parts import PriceBound, Usage
from massgen_mcp.money.price_list import register_cache

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider

_MILLION, _THOUSAND = Decimal(1_000_000), Decimal(1_000)
_NO_NAME = re.compile(r"latest|preview|exp|experimental|beta|rc|v|a?b|x|it|instruct|free|extended|batch", re.IGNORECASE)
"""What is left of versions and sizes without their digits, and what says in which state a model is."""


@dataclass(frozen=True, slots=True)
class _Steps:
    """A highest price as a function of the input's tokens: `prices[i]` from `starts[i]` on."""

    starts: tuple[int, ...]
    prices: tuple[Decimal, ...]

    def get_price(self, tokens: int) -> Decimal:
        return self.prices[bisect_right(self.starts, tokens) - 1]


@dataclass(frozen=True, slots=True)
class HighestPrice:
    """The highest known prices of some models, each on its own; in US dollars for a million tokens."""

    bound: PriceBound
    plain: _Steps
    cached: _Steps
    written: _Steps
    output: _Steps
    searches: _Steps

    def cost(self, usage: Usage) -> Decimal:
        tokens = usage.input_tokens
        cached, written, _ = usage.split_cached()
        rows = (
            (tokens - cached - written, self.plain),
            (cached, self.cached),
            (written, self.written),
            (usage.output_tokens, self.output),
        )
        total = sum((number * steps.get_price(tokens) for number, steps in rows), Decimal(0)) / _MILLION
        return total + usage.web_searches * self.searches.get_price(tokens) / _THOUSAND


def normalize_family(model: str) -> str:
    """Return the name of a model without version, date and size; empty if nothing is left."""
    bare = model.lower().rpartition("/")[2].partition(":")[0].partition("@")[0]
    parts = (re.sub(r"[\d.]+", "", part) for part in re.split(r"[-_\s]", bare))
    return "-".join(part for part in parts if part and not _NO_NAME.fullmatch(part))


@lru_cache(maxsize=256)
def highest_price(model: str, address: str | None) -> HighestPrice:
    """Return the bound of a model's price. `address`: of the provider whose prices come before all others. The list has
    to be loaded.
    """
    from genai_prices.data_snapshot import get_snapshot

    providers, family = get_snapshot().providers, normalize_family(model)
    own = _find_provider(address, providers)
    of_own = [*_iterate_priced([own])] if own else []
    everywhere = [*_iterate_priced(providers)]
    for models in (of_own, everywhere):
        if relatives := [price for name, price in models if family and normalize_family(name) == family]:
            return _build_highest(PriceBound(scope="family", of=family), relatives)
    if own and of_own:
        return _build_highest(PriceBound(scope="provider", of=own.name), [price for _, price in of_own])
    return _build_highest(PriceBound(scope="list", of="the price list"), [price for _, price in everywhere])


register_cache(highest_price.cache_clear)


def _find_provider(address: str | None, providers: Iterable["Provider"]) -> "Provider | None":
    if not address:
        return None
    return next((one for one in providers if re.match(one.api_pattern, address)), None)


def _iterate_priced(providers: Iterable["Provider"]) -> Iterator[tuple[str, "ModelPrice"]]:
    """Yield the chat models of these providers with their prices of today."""
    for provider in providers:
        for model in provider.models:
            for price in _get_prices(model):
                if _get_top(price, "input_mtok") and _get_top(price, "output_mtok"):
                    yield model.id, price


def _get_prices(model: "ModelInfo") -> Iterator["ModelPrice"]:
    """Yield the price of this moment, and those of other hours of the day."""
    from genai_prices.types import TimeOfDateConstraint

    yield model.get_prices(datetime.now(UTC))
    if isinstance(model.prices, list):
        yield from (one.prices for one in model.prices if isinstance(one.constraint, TimeOfDateConstraint))


def _build_highest(bound: PriceBound, prices: list["ModelPrice"]) -> HighestPrice:
    plain, output = _build_steps(prices, "input_mtok"), _build_steps(prices, "output_mtok")
    shown = {"input_usd_per_million": float(plain.prices[0]), "output_usd_per_million": float(output.prices[0])}
    return HighestPrice(
        bound.model_copy(update=shown),
        plain,
        cached=_build_steps(prices, "cache_read_mtok", "input_mtok"),
        written=_build_steps(prices, "cache_write_mtok", "input_mtok"),
        output=output,
        searches=_build_steps(prices, "web_searches_kcount"),
    )


def _build_steps(prices: list["ModelPrice"], *names: str) -> _Steps:
    """Return the highest of the first of these prices that each model has."""
    values = [next(filter(None, (getattr(price, name, None) for name in names)), None) for price in prices]
    starts = sorted({0, *(tier.start for value in values for tier in getattr(value, "tiers", ()))})
    highest = (max((_get_rate(value, start) for value in values), default=Decimal(0)) for start in starts)
    return _Steps(tuple(starts), tuple(highest))


def _get_rate(value: object, tokens: int) -> Decimal:
    if value is None:
        return Decimal(0)
    if isinstance(value, Decimal):
        return value
    base: Decimal = value.base  # type: ignore[attr-defined]
    return max([base, *(tier.price for tier in value.tiers if tier.start <= tokens)])  # type: ignore[attr-defined]


def _get_top(price: "ModelPrice", name: str) -> Decimal:
    return _get_rate(getattr(price, name, None), 1 << 62)
