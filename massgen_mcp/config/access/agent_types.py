"""Agent types: what there is to know of an agent before it is asked, as a class for each type, and their one registry.

A type of ours is one module of `OWN_TYPES`, which has an instance of its class as `TYPE` and is found by its name. It
loads the code of its agents when one is made: a process that only reads configs goes without. A type of somebody else's
is an installed adapter. A config names both alike.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast, runtime_checkable

from massgen_mcp.config.access import key_hosts
from massgen_mcp.config.access.acceptances import Pair
from massgen_mcp.config.access.permissions import Program
from massgen_mcp.config.access.prices import UnknownPrice
from massgen_mcp.config.adapters import (
    BY_PROVIDER,
    MEMBERS,
    OWN_TYPES,
    installed,
    is_foreign,
    list_adapters,
    list_own_types,
    load_entry,
    where_from,
)
from massgen_mcp.config.environment import is_set, read_key
from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.config.models.http_backends import AnyHttpBackend
from massgen_mcp.config.providers.catalog import named_provider

if TYPE_CHECKING:
    from massgen_mcp.config.access.local_servers import LocalServer

CONCURRENCY = 100
CLI_CONCURRENCY = 4
"""Where each call, or each agent, is a process."""
LOCAL_CONCURRENCY = 1
"""Two calls at once to a model server of this machine are each half as fast, or swap models."""

Environ = Mapping[str, str]
C = TypeVar("C")


class AgentType(Generic[C]):
    """A type of agents. Each method is asked with the config of one; a subclass overrides what it knows better."""

    name: str = ""
    """The `type` in a config."""
    misnamed: str = ""
    """What is wrong with a `TYPE/MODEL` that makes no config."""
    listed_at: str | None = None
    """Address of the provider whose listed prices hold."""
    limitable: bool = True
    """Whether a limit of tokens can be sent with a request."""
    most_output: int | None = None
    """Tokens that a reply has at most. None: unknown."""
    concurrency: int = CONCURRENCY
    """Maximum number of parallel calls."""

    def name_backend(self, model: str, asked: Mapping[str, str]) -> Mapping[str, object]:
        """Return the config of `TYPE/MODEL` in a list of models; `asked`: the model, and where, if that was said."""
        del model
        return asked

    def list_models(self, config: C) -> Iterable[AnyHttpBackend]:
        """Return the models that it asks by one of our own wires. Keys, hosts and prices of these are not repeated."""
        del config
        return ()

    def find_lack(self, config: C, environ: Environ) -> str | None:
        """Return what has to be installed before it can work here; None: nothing."""

    def get_vendor(self, config: C) -> str:
        """Return the maker of its model."""
        del config
        return self.name

    def get_destination(self, config: C, environ: Environ) -> tuple[str, str] | None:
        """Return the address and the key by which calls are limited together; None: it calls no provider."""
        for one in self.list_models(config):
            return key_hosts.provider_for(one, environ).base_url.rstrip("/"), key_hosts.find_key(one, environ) or ""
        return self.name, "\0".join(environ.get(variable, "") for variable in self.list_variables(config))

    def bound_unknown_price(self, config: C, environ: Environ) -> UnknownPrice | None:
        """Return how calls of unknown price are counted; None: with their tokens only, as by a subscription."""
        del config, environ
        return UnknownPrice()

    def bound_output(self, config: C) -> int | None:
        """Return how many tokens a reply has at most; None: unknown."""
        del config
        return self.most_output

    def get_priced_model(self, config: C) -> str | None:
        """Return the model whose price is looked up, where the config names none."""

    # -- credentials of its own, besides those of the models that it asks by our wires

    def list_key_variables(self, config: C) -> tuple[str, ...]:
        """Return the variables of which one has to hold its key."""
        del config
        return ()

    def list_variables(self, config: C) -> Iterable[str]:
        """Return the variables that decide who pays."""
        return self.list_key_variables(config)

    def list_hosts(self, config: C, environ: Environ) -> Iterable[str]:
        """Return the hosts that it asks, as `host` or `host:port`."""
        del config, environ
        return ()

    def list_addresses(self, config: C, environ: Environ) -> Iterable[str]:
        """Return the addresses of the APIs that it asks, where its own keys may go without a question."""
        del config, environ
        return ()

    def list_missing(self, config: C, environ: Environ) -> Iterable[tuple[str, ...]]:
        """Return groups of variables, of each of which one has to be set and none is."""
        names = self.list_key_variables(config)
        return () if not names or any(is_set(environ, name) for name in names) else (names,)

    def describe_alternative(self, config: C) -> str:
        """Return what else helps where they are missing."""
        del config
        return ""

    def check_credentials(self, config: C, environ: Environ) -> None:
        """Raise `MassgenError` for a key or an address that cannot be one."""

    def list_keys(self, config: C, environ: Environ) -> Iterable[Pair]:
        """Return its keys with the hosts that they are sent to."""
        hosts = [*map(key_hosts.host_of, self.list_addresses(config, environ)), *self.list_hosts(config, environ)]
        return pair_first_key(self.list_key_variables(config), hosts, environ)

    def list_refused_keys(self, config: C, environ: Environ) -> Iterable[Pair]:
        """Return the keys that may not go where the config wants them."""
        del config, environ
        return ()

    def list_secrets(self, config: C, environ: Environ) -> Iterable[tuple[str, str]]:
        """Return what besides its keys is kept out of everything that is said: names, and values."""
        del config, environ
        return ()


def pair_first_key(names: Sequence[str], hosts: Iterable[str], environ: Environ) -> Iterator[Pair]:
    """Yield each host with the first of the variables that holds a key."""
    if names:
        used = next((name for name in names if read_key(environ, name)), names[0])
        yield from (Pair(key=used, host=host) for host in hosts)


class Installable(AgentType[C]):
    """A type that is no part of the schema of configs: its own model reads the settings."""

    config: type[C]
    """The keys of a backend, beside `type`: a model of pydantic's. With a field `model` that name is shown."""


# -- what only some types can do --------------------------------------------------------------------------------------


@runtime_checkable
class StartsPrograms(Protocol):
    """A type whose agents are programs of this machine."""

    def list_programs(self, config: Any) -> Iterable[Program | str]:  # noqa: ANN401 - each has its own model
        """Return the programs that run for it: text for those of an adapter."""
        ...


@runtime_checkable
class FindsServers(Protocol):
    """A type whose models run on servers that may be found here."""

    async def find_servers(
        self, environ: Environ, places: "Sequence[LocalServer]", seconds: float | None = None
    ) -> "list[LocalServer]":
        """Return the servers of `places` that answer in time and have a model that can chat."""
        ...


@runtime_checkable
class StandsIn(Protocol):
    """A type that answers alone where nothing else is there."""

    def find_stand_in(self, environ: Environ) -> tuple[BackendConfig, str] | None:
        """Return the config of its agent as it can run here, and what it is, in words."""
        ...


@runtime_checkable
class Diagnosable(Protocol):
    """A type that the doctor asks."""

    def describe_state(self, environ: Environ) -> str:
        """Describe in one line how it stands here."""
        ...


# -- the registry -----------------------------------------------------------------------------------------------------


def find_type(name: str) -> AgentType[Any]:
    """Return our agent type of this name, which may be a provider's."""
    if name in list_own_types():
        return _load_own(name)
    return _load_own("local_servers" if named_provider(name).is_local else "provider_models")


def iterate_own_types() -> Iterator[AgentType[Any]]:
    """Yield each of our agent types once."""
    yield from map(_load_own, (*list_own_types(), *BY_PROVIDER))


@cache
def _load_own(name: str) -> AgentType[Any]:
    return import_module(f"{OWN_TYPES}.{name}").TYPE


def adapter_named(name: str) -> Installable[Any]:
    """Return the adapter of this name. Raises `ValueError` where it is not installed or cannot be loaded."""
    if not is_foreign(name):
        found: object = _load_own(name)
        origin = OWN_TYPES
    elif entry := installed(MEMBERS).get(name):
        found, origin = load_entry(entry), f"{entry.value} from {where_from(entry)}"
    else:
        others = ", ".join(list_adapters())
        raise ValueError(
            f"the adapter {name[:80]!a} isn't installed; "
            + (f"installed: {others}" if others else "none are installed")
        )
    if not isinstance(found, Installable):
        raise ValueError(f"{origin} isn't an Adapter")  # noqa: TRY004 - of a config
    adapter = cast("Installable[Any]", found)
    adapter.name = name
    return adapter
