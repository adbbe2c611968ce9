"""What one agent's model calls cost: by its config, else as the provider reports, else by a public price list; behind
a gateway that is an estimate, and for a model without a known price the highest known one of similar models.

A price that is unknown is None and never 0. The price list is genai-prices (`money.price_list`).
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from massgen_mcp.config.access.key_hosts import provider_for
from massgen_mcp.config.access.members import asked_by, find_member
from massgen_mcp.config.access.prices import Guess, PriceAs, UnknownPrice, bound_unknown_price, make_guess, price_as_of
from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.config.models.common import Price
from massgen_mcp.config.models.http_backends import AnyHttpBackend
from massgen_mcp.config.providers.addresses import host_in
from massgen_mcp.config.providers.catalog import MESSAGES_OUTPUT
from massgen_mcp.events.parts import Cost, PriceBound, PriceSource, Usage
from massgen_mcp.home import find_home
from massgen_mcp.money import price_list
from massgen_mcp.money.price_bounds import HighestPrice, highest_price
from massgen_mcp.money.price_list import register_cache

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, PriceCalculation, Provider

_MILLION = Decimal(1_000_000)
_LONG_WRITE = 1.6
"""Times the price of writing for 5 minutes: 2 and 1.25 times that of other input."""
_NO_CACHE = {"cached_input_tokens": 0, "cache_write_tokens": 0, "cache_write_long_tokens": 0}
_TIER_FACTORS = {"flex": 0.5, "priority": 2.0, "fast": 2.0}
"""Of the prices of OpenAI and Gemini, the highest factor where models differ; `fast` is OpenAI's `priority`.
https://developers.openai.com/api/docs/pricing https://ai.google.dev/gemini-api/docs/optimization
"""
_HOSTS_WITH_TIERS = frozenset({"api.openai.com", "generativelanguage.googleapis.com"})
FREE = ":free"
"""How a router's names of models end that it does not charge for."""


@dataclass(frozen=True, slots=True)
class Tariff:
    """Prices and bounds of the calls of one agent. The default knows no price."""

    model: str = ""
    price: Price | None = None
    """The config's own."""
    listed_at: str | None = None
    """Address of a provider whose prices may be looked up. None: the price list has nothing to say."""
    price_as: PriceAs | None = None
    """Where it is looked up instead, because config or environment say so."""
    guess: Guess | None = None
    """How an estimate is looked up where nothing else is known."""
    unknown: UnknownPrice | None = None
    """How calls are bounded whose price is not known even so. None: they are free, or counted with their tokens only.
    """
    is_free: bool = False
    """True: a call without any other price costs nothing, as in a private network."""
    taken_in: Path | None = None
    """The price list that the user may have taken in."""
    output_limit: int | None = None
    """Tokens that a reply has at most, by the config or by our own limit. None: the model decides."""
    limitable: bool = True
    """Whether a lower limit can be sent with a request."""
    tier_factor: float = 1.0
    """What the provider's list prices are multiplied with, as the request asks for a cheaper or a faster service."""
    others: "tuple[Tariff, ...]" = ()
    """Of the other models that the agent asks, by their names."""

    async def ready(self) -> None:
        """Load the price list if it may be needed."""
        if any(one.needs_list for one in (self, *self.others)):
            await price_list.ensure_loaded(self.taken_in)

    @property
    def needs_list(self) -> bool:
        return self.price is None and bool(self.listed_at or self.price_as or self.guess or self.unknown)

    def load(self) -> None:
        """As `ready`; not for an event loop."""
        if any(one.needs_list for one in (self, *self.others)):
            price_list.load(self.taken_in)

    @property
    def bounds(self) -> dict[str, PriceBound]:
        """Return the models that the agent asks whose prices are unknown, and how their calls are counted. The list
        has to be loaded.
        """
        found = {one.model: one.cost(Usage()).bound for one in (self, *self.others)}
        return {model: bound for model, bound in found.items() if bound is not None}

    def cost(self, usage: Usage, *, reported_usd: float | None = None, model: str = "") -> Cost:
        """Return the cost of a call, and what the provider's cache saved. `model` is the provider's name for the one
        that replied, or the config's.
        """
        cost = self._find_cost(usage, reported_usd, model)
        if not usage.cached_input_tokens and not usage.cache_write_tokens:
            return cost
        uncached = usage.model_copy(update=_NO_CACHE)
        known, full = (self._find_cost(one, None, model).usd for one in (usage, uncached))
        if known is None or full is None:
            return cost
        return cost.model_copy(
            update={"saved_usd": full - known, "discounted_tokens": self._count_discount(usage, model)}
        )

    def find_usd(self, usage: Usage) -> float | None:
        """Return the cost of a call to the config's model in US dollars; None if its price is unknown."""
        return self._find_cost(usage, None, "").usd

    def _count_discount(self, usage: Usage, model: str) -> int:
        """Count how many tokens less the cached input is worth than other input of the same length."""
        plain = Usage(input_tokens=usage.input_tokens)
        cached = Usage(input_tokens=usage.input_tokens, cached_input_tokens=usage.cached_input_tokens)
        full, reduced = (self._find_cost(one, None, model).usd or 0.0 for one in (plain, cached))
        if not full:
            return 0
        share = max(0.0, full - reduced) / full
        return min(int(usage.input_tokens * share), usage.cached_input_tokens)

    def _find_cost(self, usage: Usage, reported_usd: float | None, model: str) -> Cost:
        if model != self.model and (other := next((one for one in self.others if one.model == model), None)):
            return other.cost(usage, reported_usd=reported_usd)
        if self.price is not None:
            return Cost(usd=float(_by_config(self.price, usage)), source="config")
        if reported_usd:
            return Cost(usd=reported_usd, source="provider")
        names = [*dict.fromkeys(filter(None, (model, self.model)))]
        listed = self._look_up_names(names, usage)
        if reported_usd is not None and (not listed.usd or names[0].endswith(FREE)):
            return Cost(usd=0.0, source="provider")  # any other model that has a listed price is not free
        if listed.usd is None and self.is_free:
            return Cost(usd=0.0, source="free")
        if listed.usd is not None or self.unknown is None:
            return listed
        highest = self._find_highest(names, self.unknown)
        return Cost(usd=float(highest.cost(usage)), source="bound", bound=highest.bound)

    def _look_up_names(self, names: Sequence[str], usage: Usage) -> Cost:
        """Look the price up, at the model's provider or behind a gateway."""
        if self.price_as is not None:
            named = [self.price_as.model] if self.price_as.model else names
            return _first((_look_up(_bare(name), usage, self.price_as.address) for name in named), "genai-prices")
        listed = _first((_look_up(name, usage, self.listed_at) for name in names if self.listed_at), "genai-prices")
        if listed.usd is not None and self.tier_factor != 1.0:
            return listed.model_copy(update={"usd": listed.usd * self.tier_factor})
        if listed.usd is not None or self.guess is None:
            return listed
        guess = self.guess
        return _first((_look_up_anywhere(name, usage, guess) for name in names if guess.allows(name)), "estimate")

    def _find_highest(self, names: Sequence[str], unknown: UnknownPrice) -> HighestPrice:
        """Return the bound of the configured model, which is also what its calls are reserved at."""
        name = self.price_as.model if self.price_as is not None and self.price_as.model else self.model or names[0]
        return highest_price(name, unknown.address)

    def worst_usd(self, input_tokens: int, output_tokens: int, *, long_tokens: int = 0) -> float | None:
        """The most that a call with so many tokens can cost, wherever its input goes; None if there is no price.
        `long_tokens` of the input may be written to a cache for an hour.
        """
        plain = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        long = min(long_tokens, input_tokens)
        written = plain.model_copy(update={"cache_write_tokens": input_tokens, "cache_write_long_tokens": long})
        costs = [self.find_usd(usage) for usage in (plain, written)]
        costs += [other.worst_usd(input_tokens, output_tokens, long_tokens=long) for other in self.others]
        return max((usd for usd in costs if usd is not None), default=None)

    def window(self) -> int | None:
        """How many tokens the model reads in one call, as the price list has it, once that is there."""
        if "genai_prices.data_snapshot" not in sys.modules:
            return None
        names = dict.fromkeys(filter(None, (self.price_as and self.price_as.model, self.model, _bare(self.model))))
        places = dict.fromkeys(
            (self.price_as and self.price_as.address, self.guess and self.guess.address, self.listed_at)
        )
        found = (_find_model(name, place, None) for place in places if place is not None for name in names)
        return next((row.context_window for _, row in filter(None, found) if row.context_window), None)


def tariff_of(config: BackendConfig, environ: Mapping[str, str], *, bounded: bool = True) -> Tariff:
    """Return the tariff of an agent with this backend. A model in a private network is free but for the config's price.
    `bounded`: calls of unknown price are counted at the highest known price; otherwise with their tokens only.

    Raises `MassgenError` config_invalid for a `MASSGEN_PRICE_AS` that names no provider.
    """
    own, *others = [_of_model(asked, environ) for asked in asked_by([config])] or [_of_member(config, environ)]
    tariff = replace(own, others=tuple(others), taken_in=price_list.locate_list(find_home(environ).path))
    return tariff if bounded else _without_bounds(tariff)


def _without_bounds(tariff: Tariff) -> Tariff:
    return replace(tariff, unknown=None, others=tuple(replace(one, unknown=None) for one in tariff.others))


def _of_member(config: BackendConfig, environ: Mapping[str, str]) -> Tariff:
    member, own = find_member(config)
    return Tariff(
        member.get_priced_model(own) or config.model,
        config.price,
        member.listed_at,
        unknown=member.bound_unknown_price(own, environ),
        output_limit=member.bound_output(own),
        limitable=member.limitable,
    )


def _of_model(config: AnyHttpBackend, environ: Mapping[str, str]) -> Tariff:
    provider = provider_for(config, environ)
    listed_at = provider.base_url if provider.base_url.lower().startswith("https://") else None
    own = _limits_in(config.extra_body)
    usual = config.max_output_tokens or (MESSAGES_OUTPUT if provider.wire == "messages" else None)
    price_as = price_as_of(config, provider, environ)
    unknown = bound_unknown_price(config, provider, price_as)
    return Tariff(
        config.model,
        config.price,
        listed_at,
        price_as,
        make_guess(config, provider),
        unknown,
        is_free=unknown is None,
        output_limit=max(own, default=usual),
        limitable=not own,
        tier_factor=_get_tier_factor(config, provider.base_url),
    )


def _get_tier_factor(config: AnyHttpBackend, base_url: str) -> float:
    """Return the factor of the service tier that the request's body asks for."""
    tier = config.extra_body.get("service_tier", config.extra_body.get("serviceTier"))
    if host_in(base_url) not in _HOSTS_WITH_TIERS:
        return 1.0
    return _TIER_FACTORS.get(str(tier).lower(), 1.0)


def _limits_in(extra_body: Mapping[str, object]) -> list[int]:
    """A limit that the user put into the request's body by hand stands there whatever we send."""
    found = [extra_body.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens")]
    match extra_body.get("generationConfig"):
        case {"maxOutputTokens": int(limit)}:
            found.append(limit)
        case _:
            pass
    return [limit for limit in found if isinstance(limit, int)]


def _by_config(price: Price, usage: Usage) -> Decimal:
    cached, written, long = usage.split_cached()
    plain, write = price.input_usd_per_million, price.cache_write_usd_per_million
    rows = (
        (usage.input_tokens - cached - written, plain),
        (cached, plain if price.cached_input_usd_per_million is None else price.cached_input_usd_per_million),
        (written - long, plain if write is None else write),
        (long, plain if write is None else write * _LONG_WRITE),
        (usage.output_tokens, price.output_usd_per_million),
        (usage.web_searches * 1000, price.web_search_usd_per_thousand),
    )
    return sum((tokens * Decimal(str(usd)) for tokens, usd in rows), Decimal(0)) / _MILLION


def _first(found: Iterable[Decimal | None], source: PriceSource) -> Cost:
    usd = next((one for one in found if one is not None), None)
    return Cost() if usd is None else Cost(usd=float(usd), source=source)


def _bare(model: str) -> str:
    """`gpt-5` of a gateway's `openai/gpt-5`."""
    return model.rpartition("/")[2]


def _look_up_anywhere(model: str, usage: Usage, guess: Guess) -> Decimal | None:
    """The price of the model's own provider, which its type, the gateway's prefix or its name tell; else a router's."""
    prefix, slash, _ = model.partition("/")
    if guess.address is not None and (usd := _look_up(_bare(model), usage, guess.address)) is not None:
        return usd
    if not slash:
        return _look_up(model, usage, None)
    own = _look_up(_bare(model), usage, None, provider=prefix)
    return own if own is not None else _look_up(model, usage, None, provider="openrouter")


def _look_up(model: str, usage: Usage, url: str | None, *, provider: str | None = None) -> Decimal | None:
    """None: the list has no price. Without `url` and `provider` the model's name tells whose it is."""
    from genai_prices import Usage as ListUsage

    found = _find_model(model, url, provider)
    if found is None:
        return None
    cached, written, long = usage.split_cached()
    listed = ListUsage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=cached,
        cache_write_tokens=written,
        cache_write_1h_tokens=long,
        output_tokens=usage.output_tokens,
        web_searches=usage.web_searches,
    )
    owner, row = found
    try:
        price = row.calc_price(listed, owner)
    except (LookupError, ValueError):
        return None
    return price.total_price if _is_of_a_chat_model(price) else None


@lru_cache(maxsize=1024)  # the list itself looks through all of its models for a name that it doesn't have
def _find_model(model: str, url: str | None, provider: str | None) -> "tuple[Provider, ModelInfo] | None":
    """Return a model of the list, and whose it is there; None if the list doesn't have it."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        return get_snapshot().find_provider_model(model, None, provider, url)
    except (LookupError, ValueError):
        return None


register_cache(_find_model.cache_clear)


def _is_of_a_chat_model(found: "PriceCalculation") -> bool:
    """Prices for hours of audio alone would make the tokens of a call look free."""
    return found.model_price.input_mtok is not None and found.model_price.output_mtok is not None
