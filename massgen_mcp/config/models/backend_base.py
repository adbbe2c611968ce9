"""What all backends have in common, and what a model costs."""

from typing import Annotated

from pydantic import AfterValidator, Field

from massgen_mcp.config.models.common import Settings
from massgen_mcp.config.models.provider_types import LISTED_TYPES
from massgen_mcp.config.providers.native_tools import NativeTool
from massgen_mcp.nearest import nearest


class Price(Settings, frozen=True):
    """What a model costs, in US dollars. It goes before every other source of a price."""

    input_usd_per_million: float = Field(ge=0, le=100_000)
    """Input tokens."""
    output_usd_per_million: float = Field(ge=0, le=100_000)
    """Output tokens, reasoning included."""
    cached_input_usd_per_million: float | None = Field(default=None, ge=0, le=100_000)
    """Input read from the provider's cache. Default: as other input."""
    cache_write_usd_per_million: float | None = Field(default=None, ge=0, le=100_000)
    """Input written to the provider's cache. Default: as other input."""
    web_search_usd_per_thousand: float = Field(default=0, ge=0, le=100_000)
    """Searches that the provider runs itself."""


def check_price_as(price_as: str | None) -> str | None:
    """`PROVIDER` or `PROVIDER/MODEL`, of a provider whose prices are listed. Raises `ValueError`."""
    name = (price_as or "").partition("/")[0]
    if price_as is None or name in LISTED_TYPES:
        return price_as
    near = nearest(name, LISTED_TYPES)
    hint = f"did you mean {near!r}?" if near else f"known: {', '.join(LISTED_TYPES)}"
    raise ValueError(f"expected a provider whose prices are listed, or PROVIDER/MODEL; {hint}")


class PricedBackendConfig(Settings, frozen=True):
    """Base of every backend: each may say what its model costs."""

    price: Price | None = None
    """Default: what the provider reports for a call, else a public price list, else unknown."""

    @property
    def runs_code(self) -> bool:
        """Whether the backend itself wants commands run, in the sandbox."""
        return False

    @property
    def asked_tools(self) -> tuple[NativeTool, ...]:
        """The tools of its own that the provider is asked for."""
        return ()


class ListedBackendConfig(PricedBackendConfig, frozen=True):
    """Base of the backends that ask somebody for a model of a name, which may be in a price list."""

    price_as: Annotated[str | None, AfterValidator(check_price_as)] = Field(default=None, max_length=300)
    """A provider, or PROVIDER/MODEL, whose listed prices hold for this backend: `openai`, behind a gateway."""
