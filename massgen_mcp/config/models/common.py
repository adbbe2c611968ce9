"""What the parts of a config have in common: their base class, the names of the providers, and the kinds of values that
several of them hold.
"""

import re
from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StringConstraints

from massgen_mcp.config.environment import holds_credentials
from massgen_mcp.config.providers.catalog import NativeTool, named_provider
from massgen_mcp.errors import MassgenError
from massgen_mcp.nearest import nearest

ProviderType = Literal[
    "openai",
    "chatcompletion",
    "claude",
    "gemini",
    "grok",
    "groq",
    "cerebras",
    "together",
    "fireworks",
    "openrouter",
    "zai",
    "deepseek",
    "mistral",
    "moonshot",
    "qwen",
    "nebius",
    "perplexity",
    "huggingface",
    "github",
]
"""The providers on the internet, by the name that they have as the `type` of a backend; `chatcompletion` is any server
that speaks like OpenAI's.
"""

LISTED_TYPES: tuple[str, ...] = tuple(name for name in get_args(ProviderType) if name != "chatcompletion")
"""The providers whose prices may be named."""


class Settings(BaseModel, frozen=True, defer_build=True, extra="forbid", hide_input_in_errors=True):
    """Base of every part of a config: frozen, unknown keys refused, values never echoed in errors."""


VARIABLE_PATTERN = r"^[A-Z_][A-Z0-9_]*$"


def _plain_host(address: str) -> str:
    """One host that every URL parser reads alike: keys are chosen by it."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    if not re.fullmatch(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:.]+", host):
        raise ValueError("expected an address with a plain host name (and port), such as https://host:8000/v1")
    return address


def _without_credentials(address: object) -> object:
    """Addresses are shown and kept, in configs, records and errors."""
    if isinstance(address, str) and holds_credentials(address):
        raise ValueError(
            "expected an http:// or https:// address without credentials; name the key's variable in api_key_env"
        )
    return address


Address = Annotated[
    str,
    StringConstraints(pattern=r"^https?://[^\s@]+$", max_length=500),
    AfterValidator(_plain_host),
    BeforeValidator(_without_credentials),
]


def _check_is_root(address: str) -> str:
    """Our paths are appended to it: behind a `?` or `#` they would be none."""
    if "?" in address or "#" in address:
        raise ValueError("expected an address without ? and #, such as https://host:8000/v1")
    return address


ModelAddress = Annotated[Address, AfterValidator(_check_is_root)]
"""The root of a model's API."""


def _printable(name: str) -> str:
    if not name.isprintable():
        raise ValueError("expected a name without line breaks or control characters")
    return name


PrintableName = Annotated[str, AfterValidator(_printable)]

MAX_MODEL_NAME = 200


def _refuse_variables(text: str) -> str:
    if "${" in text or text.startswith("$"):
        raise ValueError("write the name itself, or pass the model with --model")
    return text


ModelName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_MODEL_NAME),
    AfterValidator(_printable),
    AfterValidator(_refuse_variables),
]
"""It stands in requests, in one line of logs and on terminals."""


def _endpoint(text: str) -> str:
    """One host and one port: a list of hosts is no list if a part of it may stand for others."""
    host, _, port = text.rpartition(":")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*", host) or not (port.isdecimal() and 0 < int(port) < 65536):
        raise ValueError("expected host:port, such as pypi.org:443")
    return text.lower()


HostPort = Annotated[str, StringConstraints(max_length=260), AfterValidator(_endpoint)]
"""A host and a port, as `host:port`."""


def _absolute_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    if wrong := [path for path in paths if not path.startswith("/") or ".." in path.split("/")]:
        raise ValueError(f"expected absolute paths, not {wrong[0]!a}")
    return paths


AbsolutePaths = Annotated[tuple[str, ...], AfterValidator(_absolute_paths)]


# -- what all backends have in common, and what a model costs ---------------------------------------------------------


class Price(Settings, frozen=True):
    """A model's price in US dollars. It overrides all other sources."""

    input_usd_per_million: float = Field(ge=0, le=100_000)
    """Price of input tokens."""
    output_usd_per_million: float = Field(ge=0, le=100_000)
    """Price of output tokens, including reasoning."""
    cached_input_usd_per_million: float | None = Field(default=None, ge=0, le=100_000)
    """Price of input read from the provider's cache. Default: the input price."""
    cache_write_usd_per_million: float | None = Field(default=None, ge=0, le=100_000)
    """Price of input written to the provider's cache. Default: the input price."""
    web_search_usd_per_thousand: float = Field(default=0, ge=0, le=100_000)
    """Price of the provider's own web searches."""


def check_price_as(price_as: str | None) -> str | None:
    """`PROVIDER` or `PROVIDER/MODEL`, of a provider whose prices are listed. Raises `ValueError`."""
    name = (price_as or "").partition("/")[0]
    if price_as is None or name in LISTED_TYPES:
        return price_as
    near = nearest(name, LISTED_TYPES)
    hint = f"did you mean {near!r}?" if near else f"known: {', '.join(LISTED_TYPES)}"
    raise ValueError(f"expected a provider with listed prices, or PROVIDER/MODEL; {hint}")


def check_fallback(fallback: str | None) -> str | None:
    """Check that this is PROVIDER/MODEL, of a provider with an HTTP API. Raises `ValueError`."""
    if fallback is None:
        return None
    provider, _, model = fallback.partition("/")
    if not provider or not model or not model.isprintable() or len(model) > MAX_MODEL_NAME:
        raise ValueError("expected PROVIDER/MODEL, such as openai/gpt-5")
    try:
        named_provider(provider)
    except MassgenError as error:
        raise ValueError(str(error)) from None
    return fallback


class PricedBackendConfig(Settings, frozen=True):
    """Base of every backend: each may say what its model costs, and which model takes its place."""

    price: Price | None = None
    """The model's price. Default: the price that the provider reports, otherwise the one in a public price list,
    otherwise the highest known price of a similar model.
    """
    fallback: Annotated[str | None, AfterValidator(check_fallback)] = None
    """PROVIDER/MODEL that replaces the agent's model if a quota or balance is used up or the provider is down. It runs
    with the provider's default settings.
    """

    @property
    def runs_code(self) -> bool:
        """Whether the backend itself wants commands run, in the sandbox."""
        return False

    @property
    def talks_in_a_group(self) -> bool:
        """Whether several agents stand behind it, who say among themselves who speaks next."""
        return False

    @property
    def outside(self) -> str | None:
        """The key by which a program is to run with all of the user's rights; None: there is none."""
        return None

    @property
    def asked_tools(self) -> tuple[NativeTool, ...]:
        """The tools of its own that the provider is asked for."""
        return ()


class ListedBackendConfig(PricedBackendConfig, frozen=True):
    """Base of the backends that ask somebody for a model of a name, which may be in a price list."""

    price_as: Annotated[str | None, AfterValidator(check_price_as)] = Field(default=None, max_length=300)
    """PROVIDER or PROVIDER/MODEL whose list prices apply, such as `openai` for a gateway."""
