"""Whose prices hold for a model that is asked somewhere else than at a provider we know: `price_as`, here or in the
environment, else the model's own provider's, as an estimate. Pure; prices themselves are `money.tariff`'s.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from massgen_mcp.config.models.common import check_price_as
from massgen_mcp.config.models.http_backends import AnyHttpBackend, LocalBackendConfig
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
    """False: the address may be this machine or its network, where open models cost nothing; only models that nobody
    can have at home are looked up.
    """

    def allows(self, model: str) -> bool:
        return self.anywhere or any(
            row.plain_models and re.fullmatch(row.plain_models, _bare(row, model)) for row in PROVIDERS
        )


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


def guess_of(backend: AnyHttpBackend, asked: Provider) -> Guess | None:
    """None where the provider is known, or the model is somebody's own."""
    if not _is_foreign(backend, asked):
        return None
    address = named_provider(backend.type).base_url if backend.type != "chatcompletion" else None
    return Guess(address or None, asked.base_url.lower().startswith("https://"))


def _is_foreign(backend: AnyHttpBackend, asked: Provider) -> bool:
    return not isinstance(backend, LocalBackendConfig) and owner_of(asked.base_url) is None


def _bare(row: Provider, model: str) -> str:
    """`gpt-5` of `openai/gpt-5`, for this provider."""
    prefix, slash, name = model.lower().partition("/")
    return name if slash and prefix in (row.type, *row.aliases, "x-ai" if row.type == "grok" else "") else model.lower()
