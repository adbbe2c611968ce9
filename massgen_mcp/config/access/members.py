"""What is asked of every agent of a team before it is called: each question, put to the type of its backend.

Our own types and the adapters of others are asked alike (`agent_types`), and so is the fallback of a backend.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from massgen_mcp.config.access import key_hosts
from massgen_mcp.config.access.acceptances import Pair
from massgen_mcp.config.access.agent_types import (
    LOCAL_CONCURRENCY,
    AgentType,
    Environ,
    Installable,
    StartsPrograms,
    adapter_named,
    find_type,
    pair_first_key,
)
from massgen_mcp.config.access.fallbacks import iterate_with_fallbacks
from massgen_mcp.config.access.permissions import LoadAdapter, Program, StartOther
from massgen_mcp.config.access.prices import UnknownPrice
from massgen_mcp.config.adapters import MEMBERS, installed, is_foreign, list_adapters, where_from
from massgen_mcp.config.models.backends import BackendConfig, InstalledBackendConfig
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.http_backends import AnyHttpBackend
from massgen_mcp.config.yaml_reader import Place
from massgen_mcp.errors import BackendError
from massgen_mcp.name_lists import join_names


class _Absent(AgentType[BackendConfig]):
    """An adapter that is not there, or cannot be used."""

    def __init__(self, config: BackendConfig, fault: str) -> None:
        self._fault = fault
        if isinstance(config, InstalledBackendConfig):
            self.name = config.adapter

    def find_lack(self, config: BackendConfig, environ: Environ) -> str | None:
        del config, environ
        return self._fault


def own_settings(adapter: Installable[Any], settings: Mapping[str, Any]) -> BaseModel:
    """What the adapter's own model makes of a config's settings. Raises `ValueError` that names every fault."""
    try:
        return adapter.config.model_validate(settings)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        raise ValueError("; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in faults)) from None


def member_of(config: BackendConfig) -> tuple[AgentType[Any], Any]:
    """Return the agent type that a config names, and what it says of the agent in the type's own terms.

    Raises `ValueError` for an adapter that is not there, or that wants other settings.
    """
    if isinstance(config, InstalledBackendConfig):
        adapter = adapter_named(config.adapter)
        return adapter, own_settings(adapter, config.settings)
    return find_type(config.type), config


def find_member(config: BackendConfig) -> tuple[AgentType[Any], Any]:
    """Return the same as `member_of`; where an adapter is not there, that is what it lacks."""
    try:
        return member_of(config)
    except ValueError as error:
        return _Absent(config, str(error)), config


def _iterate_members(backends: Iterable[BackendConfig]) -> Iterator[tuple[AgentType[Any], Any]]:
    """Yield the type and the config of each backend and of its fallback."""
    return map(find_member, iterate_with_fallbacks(backends))


def list_faults(config: Config) -> Iterator[tuple[Place, str]]:
    """Yield what is wrong with the adapters that a config names and that are installed, and where."""
    for number, agent in enumerate(config.agents):
        if agent.backend.type != "installed" or agent.kind not in list_adapters():
            continue
        try:
            member_of(agent.backend)
        except ValueError as error:
            yield ("agents", number, "backend"), str(error)


def asked_by(backends: Iterable[BackendConfig]) -> tuple[AnyHttpBackend, ...]:
    """The models that these ask by our own wires: their own, those behind them, or none."""
    members = map(find_member, backends)
    return tuple(one for member, own in members for one in member.list_models(own))


def lack(config: BackendConfig, environ: Environ) -> str | None:
    """What has to be installed, or said otherwise, before it can work here; None: nothing."""
    found = (member.find_lack(own, environ) for member, own in _iterate_members([config]))
    return next(filter(None, found), None)


def missing(config: BackendConfig, environ: Environ) -> list[tuple[str, ...]]:
    """What keeps a run with it from starting: groups of variables, of each of which one has to be set."""
    found: list[tuple[str, ...]] = []
    for member, own in _iterate_members([config]):
        found += [names for one in member.list_models(own) for names in key_hosts.missing_variables(one, environ)]
        found += member.list_missing(own, environ)
    return list(dict.fromkeys(found))


def require_parts(config: BackendConfig, environ: Environ) -> None:
    """Raise `BackendError` if something has to be installed, or a key is missing."""
    if fault := lack(config, environ):
        raise BackendError("bad_request", fault)
    for names in missing(config, environ):
        raise BackendError(
            "auth",
            f"{config.type} {config.model} needs {join_names(names, 'or')} in the environment"
            f"{describe_alternative(config)}",
        )


def describe_alternative(config: BackendConfig) -> str:
    member, own = find_member(config)
    return member.describe_alternative(own)


def check_credentials(config: BackendConfig, environ: Environ) -> None:
    """Raises `MassgenError("config_invalid")` naming the variable of a key that cannot be one (see `read_key`), or
    of an address with credentials in it.
    """
    for member, own in _iterate_members([config]):
        for one in member.list_models(own):
            key_hosts.check_credentials(one, environ)
        member.check_credentials(own, environ)


def refused_keys(backends: Iterable[BackendConfig], environ: Environ) -> tuple[Pair, ...]:
    """The keys that these want to send to hosts that may not have them."""
    found: list[Pair] = []
    for member, own in _iterate_members(backends):
        found += [pair for one in member.list_models(own) for pair in key_hosts.list_refused_keys(one, environ)]
        found += member.list_refused_keys(own, environ)
    return tuple(dict.fromkeys(found))


def addresses(backends: Iterable[BackendConfig], environ: Environ) -> list[str]:
    """Where models are asked, as far as that is not an adapter's or an agent CLI's own matter."""
    found: list[str] = []
    for member, own in _iterate_members(backends):
        found += [url for one in member.list_models(own) if (url := key_hosts.provider_for(one, environ).base_url)]
        found += member.list_addresses(own, environ)
    return found


def hosts(config: BackendConfig, environ: Environ) -> list[str]:
    found = [*map(key_hosts.host_of, addresses([config], environ))]
    return found + [host for member, own in _iterate_members([config]) for host in member.list_hosts(own, environ)]


def keys(config: BackendConfig, environ: Environ) -> Iterator[Pair]:
    """The variables whose values it is given, and the hosts that they are sent to. Of those that may hold a key, the
    first that is set.
    """
    for member, own in _iterate_members([config]):
        for one in member.list_models(own):
            if url := key_hosts.provider_for(one, environ).base_url:
                yield from pair_first_key(key_hosts.key_variables(one, environ), [key_hosts.host_of(url)], environ)
        yield from member.list_keys(own, environ)


def variables(config: BackendConfig) -> Iterator[str]:
    """Names of the variables that this config names itself, and that decide who pays."""
    member, own = find_member(config)
    yield from (one.api_key_env for one in member.list_models(own) if one.api_key_env)
    yield from member.list_variables(own)


def secrets(config: BackendConfig, environ: Environ) -> Iterator[tuple[str, str]]:
    """What is to be kept out of everything that is said: names to call it by, and values."""
    member, own = find_member(config)
    names = [*(one.api_key_env or "" for one in member.list_models(own)), *member.list_key_variables(own)]
    yield from ((name, environ[name]) for name in names if name in environ)
    yield from member.list_secrets(own, environ)


def start_permissions(config: BackendConfig) -> tuple[Program, ...]:
    """Return the programs that run for it on this machine, as a person accepts them."""
    member, own = find_member(config)
    found: list[Program] = []
    if isinstance(member, Installable) and is_foreign(member.name):
        found.append(LoadAdapter(member.name, where_from(installed(MEMBERS)[member.name])))
    if isinstance(member, StartsPrograms):
        found += [StartOther(one) if isinstance(one, str) else one for one in member.list_programs(own)]
    return tuple(found)


def destination(config: BackendConfig, environ: Environ) -> tuple[str, str] | None:
    """Whom calls go to, and with whose key; None if it calls nobody."""
    member, own = find_member(config)
    return member.get_destination(own, environ)


def concurrency(config: BackendConfig, environ: Environ) -> int:
    """How many calls at once whoever is asked stands."""
    member, own = find_member(config)
    first = next(iter(member.list_models(own)), None)
    if first and key_hosts.serves_here(first, environ):
        return LOCAL_CONCURRENCY
    return member.concurrency


def get_unknown_price(config: BackendConfig, environ: Environ) -> UnknownPrice | None:
    """Return how calls of unknown price are counted; None: with their tokens only."""
    member, own = find_member(config)
    return member.bound_unknown_price(own, environ)


def vendor_of(config: BackendConfig) -> str:
    """Who makes its model, as far as the provider tells; a scripted agent's is the name of its model."""
    member, own = find_member(config)
    return member.get_vendor(own)
