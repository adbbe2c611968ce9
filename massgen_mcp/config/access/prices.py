"""Whose prices hold for a model that is asked somewhere else than at a provider we know: `price_as`, here or in the
environment, else the model's own provider's, as an estimate; and which models are free. Pure; prices themselves are
`money.tariff`'s.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from massgen_mcp.config.models.common import check_price_as
from massgen_mcp.config.models.http_backends import AnyHttpBackend, LocalBackendConfig
from massgen_mcp.config.providers.addresses import is_private
from massgen_mcp.config.providers.catalog import PROVIDERS, Provider, named_provider, owner_of
from massgen_mcp.errors import MassgenError

PRICE_AS_VARIABLE = "MASSGEN_PRICE_AS"
"""`price_as` of every backend that does not name it and is asked at an address of no provider we know."""


@dataclass(frozen=True, slots=True)
class PriceAs:
    """Where a price list is to look a model up."""

    address: str
    model: str | None = None
    """None: the one that is asked."""


@dataclass(frozen=True, slots=True)
class Guess:
    """How the model's own provider may be found for an estimate."""

    address: str | None
    """Of the provider that the backend's type names, if it names one."""
    anywhere: bool
    """False: the address is in a private network, where open models cost nothing; only commercial models are looked
    up.
    """

    def allows(self, model: str) -> bool:
        return self.anywhere or is_commercial(model)


@dataclass(frozen=True, slots=True)
class UnknownPrice:
    """Where the highest price is looked up for a model that has no known price of its own."""

    address: str | None = None
    """Of the provider whose prices come before all others."""


_HOSTED = re.compile(
    r"(?:openrouter|groq|together(?:_ai)?|fireworks(?:_ai)?|bedrock|vertex_ai|azure(?:_ai)?|anthropic|xai|perplexity"
    r"|replicate|deepinfra)/.+",
    re.IGNORECASE,
)
"""Models that a proxy has from a host on the internet, as LiteLLM names them."""
_COMMERCIAL = re.compile(
    r"sonar(?:-\S+)?|command-\S+|(?:mistral|magistral)-(?:large|medium)\S*|codestral-latest|deepseek-(?:chat|reasoner)"
    r"|qwen\d*(?:\.\d+)?-(?:max|plus|turbo|flash)\S*|kimi-latest|(?:\w+\.)?nova-\S+|jamba-(?:large|mini)\S*",
    re.IGNORECASE,
)
"""Commercial models of providers that have open ones, too."""


def is_commercial(model: str) -> bool:
    """Return whether the name is one of a model that cannot be had at home."""
    patterns = _HOSTED.fullmatch(model) or _COMMERCIAL.fullmatch(_strip_prefixes(model))
    return patterns is not None or _find_maker(model) is not None


def bound_unknown_price(backend: AnyHttpBackend, asked: Provider, price_as: PriceAs | None) -> UnknownPrice | None:
    """Return how the model is bounded where its price is unknown; None for a free one. Free are models in private
    networks, unless their names are those of commercial models.
    """
    if is_private(asked.base_url) and price_as is None and not is_commercial(backend.model):
        return None
    owner, maker = owner_of(asked.base_url), _find_maker(backend.model)
    if price_as is not None:
        return UnknownPrice(price_as.address)
    if owner is None and named_provider(backend.type).is_local:
        return UnknownPrice(maker and maker.base_url)
    named = owner or maker or (named_provider(backend.type) if backend.type != "chatcompletion" else None)
    return UnknownPrice((named and named.base_url) or None)


def _find_maker(model: str) -> Provider | None:
    """Return the provider whose commercial models have such names."""
    return next(
        (row for row in PROVIDERS if row.plain_models and re.fullmatch(row.plain_models, _bare(row, model))), None
    )


def _strip_prefixes(model: str) -> str:
    """Return `gpt-5` of a gateway's `openai/gpt-5` and of a cloud's `us.anthropic.gpt-5`."""
    return re.sub(r"^(?:[a-z]{2,12}\.)*(?=[a-z])", "", model.lower().rpartition("/")[2])


def operators_price_as(environ: Mapping[str, str]) -> str | None:
    """What the environment says. Raises `MassgenError` config_invalid naming the variable."""
    price_as = environ.get(PRICE_AS_VARIABLE, "").strip() or None
    try:
        return check_price_as(price_as)
    except ValueError as error:
        raise MassgenError("config_invalid", f"{PRICE_AS_VARIABLE}: {error}") from None


def price_as_of(backend: AnyHttpBackend, asked: Provider, environ: Mapping[str, str]) -> PriceAs | None:
    """What config or environment say. `asked` is the row that holds for the backend. Raises as `operators_price_as`."""
    price_as = backend.price_as
    if price_as is None and _is_foreign(backend, asked):
        price_as = operators_price_as(environ)
    if price_as is None:
        return None
    name, _, model = price_as.partition("/")
    return PriceAs(named_provider(name).base_url, model or None)


def make_guess(backend: AnyHttpBackend, asked: Provider) -> Guess | None:
    """Return how an estimate may be found; None where the provider is known, or the model is the user's own."""
    if not _is_foreign(backend, asked):
        return None
    row = named_provider(backend.type)
    address = None if backend.type == "chatcompletion" or row.is_local else row.base_url
    return Guess(address or None, not is_private(asked.base_url))


def _is_foreign(backend: AnyHttpBackend, asked: Provider) -> bool:
    """Return whether no provider is asked whose prices are known, and no model server of one's own."""
    if owner_of(asked.base_url) is not None:
        return False
    own = isinstance(backend, LocalBackendConfig) and is_private(asked.base_url)
    return not own or is_commercial(backend.model)


def _bare(row: Provider, model: str) -> str:
    """`gpt-5` of `openai/gpt-5`, for this provider."""
    prefix, slash, name = model.lower().partition("/")
    own = slash and prefix in (row.type, *row.aliases, "x-ai" if row.type == "grok" else "")
    return name if own else _strip_prefixes(model)
