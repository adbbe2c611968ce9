"""What there is to know of a member of the team before it is asked: the table behind the `type` of a backend.

Our own types and the adapters of others stand in it alike, and who asks here never asks which type a backend is. The
code that a member answers with is `backends.registry`'s.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel, ValidationError

from massgen_mcp.config import ag2_agents
from massgen_mcp.config.access import acp_agents, agent_clis, key_hosts
from massgen_mcp.config.access.acceptances import Pair
from massgen_mcp.config.access.acp_agents import backend_named
from massgen_mcp.config.access.fallbacks import iterate_with_fallbacks
from massgen_mcp.config.access.permissions import LoadAdapter, Program, StartOther
from massgen_mcp.config.access.prices import UnknownPrice, bound_unknown_price, price_as_of
from massgen_mcp.config.adapters import MEMBERS, installed, loaded, where_from
from massgen_mcp.config.environment import is_set, read_key
from massgen_mcp.config.installed import OF_MODELS, wrong_versions
from massgen_mcp.config.models.ag2 import Ag2BackendConfig
from massgen_mcp.config.models.backends import (
    ACP_PRESETS,
    AcpBackendConfig,
    BackendConfig,
    ClaudeCodeBackendConfig,
    InstalledBackendConfig,
    ScriptedBackendConfig,
)
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.http_backends import AnyHttpBackend
from massgen_mcp.config.providers.catalog import NEWEST, named_provider
from massgen_mcp.config.yaml_reader import Place

CONCURRENCY = 100
CLI_CONCURRENCY = 4
"""Where each call, or each agent, is a process."""
LOCAL_CONCURRENCY = 1
"""Two calls at once to a model server of this machine are each half as fast, or swap models."""

Environ = Mapping[str, str]
C = TypeVar("C")


def _none(*_args: object) -> tuple[()]:
    return ()


def _nothing(*_args: object) -> None:
    return None


def _no_words(*_args: object) -> str:
    return ""


def _bound_by_list(*_args: object) -> UnknownPrice:
    return UnknownPrice()


def _model(model: str, asked: Mapping[str, str]) -> Mapping[str, object]:
    del asked
    return {"model": model}


@dataclass(frozen=True, kw_only=True, eq=False)
class MemberKind(Generic[C]):
    """One kind of member. Each part is a function of its config and the environment; most can be left out."""

    named: Callable[[str, Mapping[str, str]], Mapping[str, object]] = _model
    """The config of `TYPE/MODEL` in a list of models; `asked`: the model, and where, if that was said."""
    misnamed: str = ""
    """What is wrong with such a name that makes no config."""

    asked: Callable[[C], Iterable[AnyHttpBackend]] = _none
    """The models that it asks by one of our own wires. Their keys, hosts and prices need not be told again."""
    key_variables: Callable[[C], tuple[str, ...]] = _none
    """Variables of which one has to hold its key."""
    hosts: Callable[[C, Environ], Iterable[str]] = _none
    """Whom it asks, as `host` or `host:port`."""
    addresses: Callable[[C, Environ], Iterable[str]] = _none
    """The same as addresses of an API, where its own keys may go unasked."""
    lack: Callable[[C, Environ], str | None] = _nothing
    """What has to be installed before it can work here; None: nothing."""
    missing: Callable[[C, Environ], Iterable[tuple[str, ...]]] | None = None
    """Groups of variables, of each of which one has to be set and none is. Default: its `key_variables`."""
    or_else: Callable[[C], str] = _no_words
    """What else helps where they are missing."""
    check: Callable[[C, Environ], None] = _nothing
    """Raises `MassgenError` for a key or an address that cannot be one."""
    keys: Callable[[C, Environ], Iterable[Pair]] | None = None
    """Its keys with the hosts that they are sent to. Default: the first of `key_variables` that is set, to each."""
    refused: Callable[[C, Environ], Iterable[Pair]] = _none
    """Keys that may not go where the config wants them."""
    variables: Callable[[C], Iterable[str]] | None = None
    """Names of the variables that decide who pays. Default: its `key_variables`."""
    secrets: Callable[[C, Environ], Iterable[tuple[str, str]]] = _none
    """What besides its keys is kept out of everything that is said: names, and values."""
    starts: Callable[[C], Iterable[Program | str]] = _none
    """The programs that run for it on this machine: text for those of an adapter."""
    destination: Callable[[C, Environ], tuple[str, str] | None] | None = None
    """Whom its calls go to and with whose key: calls to the same are limited together. None: it calls nobody."""
    vendor: Callable[[C], str] | None = None
    """Who makes its model. Default: its type."""
    doctor: Callable[[Environ], str] | None = None
    """How it stands here, in one line."""
    listed_at: str | None = None
    """Address of the provider whose listed prices hold."""
    limitable: bool = True
    """Whether a limit of tokens can be sent with a request."""
    most_output: int | None = None
    """Tokens that a reply has at most. None: unknown."""
    unknown_price: Callable[[C, Environ], UnknownPrice | None] = _bound_by_list
    """How its calls are counted where their price is unknown; None: with their tokens only, as by a subscription."""
    priced_as: Callable[[C], str | None] = _nothing
    """The model whose price is looked up, where its config names none."""
    concurrency: int = CONCURRENCY
    """Calls at once that it stands."""


@dataclass(frozen=True, kw_only=True)
class Installable(MemberKind[C]):
    """A kind of member that somebody else's package brings."""

    config: type[C]
    """What a config says of it, beside `type`: a model of pydantic's. With a field `model` that name is shown."""


SCRIPTED = MemberKind[ScriptedBackendConfig](
    destination=_nothing, unknown_price=_nothing, vendor=lambda config: config.model
)


def _bound_http_price(config: AnyHttpBackend, environ: Environ) -> UnknownPrice | None:
    asked = key_hosts.provider_for(config, environ)
    return bound_unknown_price(config, asked, price_as_of(config, asked, environ))


HTTP = MemberKind[AnyHttpBackend](
    asked=lambda config: (config,),
    lack=lambda _config, _environ: "; ".join(map(str, wrong_versions(*OF_MODELS))) or None,
    vendor=lambda config: key_hosts.provider_for(config).type,
    unknown_price=_bound_http_price,
)
AG2 = MemberKind[Ag2BackendConfig](
    named=lambda _, asked: {"agent_config": {"llm_config": dict(asked)}},
    asked=lambda config: config.asked,
    lack=lambda _config, _environ: ag2_agents.lack(),
)


def _bound_by_vendor(vendor: str) -> UnknownPrice:
    """Return the bound by the prices of a vendor that default teams take models of."""
    return UnknownPrice(named_provider(vendor).base_url)


def _bound_acp_price(config: AcpBackendConfig, _environ: Environ) -> UnknownPrice | None:
    """Return the bound of an agent whose key is paid for by tokens; None: by a subscription, or unknown to whom."""
    vendor = acp_agents.preset_of(config).vendor
    if config.preset is None or config.login != "key" or vendor not in NEWEST:
        return None
    return _bound_by_vendor(vendor)


def _bound_claude_code_price(config: ClaudeCodeBackendConfig, environ: Environ) -> UnknownPrice | None:
    if not agent_clis.is_paid_by_key(config, environ):
        return None
    return _bound_by_vendor("claude")


CLAUDE_CODE = MemberKind[ClaudeCodeBackendConfig](
    misnamed="a model name for Claude Code starts with a letter or digit and has no spaces",
    key_variables=agent_clis.key_variables,
    addresses=lambda _, environ: (agent_clis.address(environ),),
    lack=lambda _, environ: agent_clis.lack(environ),
    missing=agent_clis.missing_login,
    or_else=agent_clis.or_a_login,
    check=agent_clis.check_credentials,
    refused=agent_clis.refused,
    secrets=agent_clis.login_secrets,
    starts=agent_clis.start_permissions,
    destination=agent_clis.destination,
    vendor=lambda _: "claude",
    listed_at=key_hosts.CLAUDE_URL,
    limitable=False,
    most_output=64_000,
    unknown_price=_bound_claude_code_price,
    priced_as=lambda config: NEWEST["claude"] if config.model == "default" else None,
    concurrency=CLI_CONCURRENCY,
)
ACP = MemberKind[AcpBackendConfig](
    named=lambda model, _: backend_named(model),
    misnamed=f"expected acp/PRESET or acp/PRESET/MODEL, with one of {', '.join(ACP_PRESETS)}",
    hosts=lambda config, _: (host.removesuffix(":443") for host in acp_agents.hosts_of(config)),
    lack=acp_agents.lack,
    missing=acp_agents.missing_login,
    keys=acp_agents.pairs_of,
    variables=acp_agents.login_variables,
    secrets=acp_agents.login_secrets,
    starts=acp_agents.start_permissions,
    destination=acp_agents.destination,
    vendor=lambda config: acp_agents.preset_of(config).vendor,
    limitable=False,
    unknown_price=_bound_acp_price,
    priced_as=lambda config: NEWEST.get(acp_agents.preset_of(config).vendor) if config.model == "default" else None,
    concurrency=CLI_CONCURRENCY,
)


OWN: Mapping[str, MemberKind[Any]] = {
    "scripted": SCRIPTED,
    "ag2": AG2,
    "claude_code": CLAUDE_CODE,
    "acp": ACP,
}
"""By type; every other type of ours is `HTTP`."""


# -- adapters of others -----------------------------------------------------------------------------------------------


def adapter_named(name: str) -> Installable[Any]:
    """The adapter of this name. Raises `ValueError` in one line where it is not installed or cannot be loaded."""
    if (entry := installed(MEMBERS).get(name)) is None:
        others = ", ".join(installed(MEMBERS))
        raise ValueError(
            f"there is no installed adapter {name[:80]!a}; " + (f"here are {others}" if others else "none is")
        )
    found = loaded(entry)
    if not isinstance(found, Installable):
        raise ValueError(f"{entry.value} of {where_from(entry)} isn't an Adapter")  # noqa: TRY004 - of a config
    adapter = cast("Installable[Any]", found)
    code = LoadAdapter(name, where_from(entry))

    def starts(config: BaseModel) -> tuple[Program | str, ...]:
        return code, *adapter.starts(config)

    return replace(adapter, starts=starts)


def own_settings(adapter: Installable[Any], settings: Mapping[str, Any]) -> BaseModel:
    """What the adapter's own model makes of a config's settings. Raises `ValueError` that names every fault."""
    try:
        return adapter.config.model_validate(settings)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        raise ValueError("; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in faults)) from None


def member_of(config: BackendConfig) -> tuple[MemberKind[Any], Any]:
    """The member that a config names, and what it says of it in the member's own terms. Raises `ValueError` for an
    adapter that is not there, or that wants other settings.
    """
    if isinstance(config, InstalledBackendConfig):
        adapter = adapter_named(config.adapter)
        return adapter, own_settings(adapter, config.settings)
    return OWN.get(config.type, HTTP), config


def _member_kind(config: BackendConfig) -> tuple[MemberKind[Any], Any]:
    """`member_of`; where an adapter is not there, that is what it lacks."""
    try:
        return member_of(config)
    except ValueError as error:
        fault = str(error)
        return MemberKind[BackendConfig](lack=lambda _config, _environ: fault), config


def _iterate_kinds(backends: Iterable[BackendConfig]) -> Iterator[tuple[MemberKind[Any], Any]]:
    """Yield the kind and the config of each backend and of its fallback."""
    return map(_member_kind, iterate_with_fallbacks(backends))


def known(config: BackendConfig) -> MemberKind[Any]:
    return _member_kind(config)[0]


def faults(config: Config) -> Iterator[tuple[Place, str]]:
    """What is wrong with the adapters that a config names and that are installed, and where."""
    for number, agent in enumerate(config.agents):
        if agent.backend.type != "installed" or agent.kind not in installed(MEMBERS):
            continue
        try:
            member_of(agent.backend)
        except ValueError as error:
            yield ("agents", number, "backend"), str(error)


# -- what is asked of every member ------------------------------------------------------------------------------------


def asked_by(backends: Iterable[BackendConfig]) -> tuple[AnyHttpBackend, ...]:
    """The models that these ask by our own wires: their own, those behind them, or none."""
    return tuple(one for backend in backends for member, own in [_member_kind(backend)] for one in member.asked(own))


def lack(config: BackendConfig, environ: Environ) -> str | None:
    """What has to be installed, or said otherwise, before it can work here; None: nothing."""
    found = (member.lack(own, environ) for member, own in _iterate_kinds([config]))
    return next(filter(None, found), None)


def missing(config: BackendConfig, environ: Environ) -> list[tuple[str, ...]]:
    """What keeps a run with it from starting: groups of variables, of each of which one has to be set."""
    found: list[tuple[str, ...]] = []
    for member, own in _iterate_kinds([config]):
        found += [names for one in member.asked(own) for names in key_hosts.missing_variables(one, environ)]
        if member.missing is not None:
            found += member.missing(own, environ)
        elif (names := member.key_variables(own)) and not any(is_set(environ, name) for name in names):
            found.append(names)
    return list(dict.fromkeys(found))


def or_else(config: BackendConfig) -> str:
    member, own = _member_kind(config)
    return member.or_else(own)


def check_credentials(config: BackendConfig, environ: Environ) -> None:
    """Raises `MassgenError("config_invalid")` naming the variable of a key that cannot be one (see `read_key`), or
    of an address with credentials in it.
    """
    for member, own in _iterate_kinds([config]):
        for one in member.asked(own):
            key_hosts.check_credentials(one, environ)
        member.check(own, environ)


def refused_keys(backends: Iterable[BackendConfig], environ: Environ) -> tuple[Pair, ...]:
    """The keys that these want to send to hosts that may not have them."""
    found: list[Pair] = []
    for member, own in _iterate_kinds(backends):
        found += [pair for one in member.asked(own) for pair in key_hosts.refused(one, environ)]
        found += member.refused(own, environ)
    return tuple(dict.fromkeys(found))


def addresses(backends: Iterable[BackendConfig], environ: Environ) -> list[str]:
    """Where models are asked, as far as that is not an adapter's or an agent CLI's own matter."""
    found: list[str] = []
    for member, own in _iterate_kinds(backends):
        found += [url for one in member.asked(own) if (url := key_hosts.provider_for(one, environ).base_url)]
        found += member.addresses(own, environ)
    return found


def hosts(config: BackendConfig, environ: Environ) -> list[str]:
    found = [*map(key_hosts.host_of, addresses([config], environ))]
    return found + [host for member, own in _iterate_kinds([config]) for host in member.hosts(own, environ)]


def keys(config: BackendConfig, environ: Environ) -> Iterator[Pair]:
    """The variables whose values it is given, and the hosts that they are sent to. Of those that may hold a key, the
    first that is set.
    """
    for member, own in _iterate_kinds([config]):
        for one in member.asked(own):
            if url := key_hosts.provider_for(one, environ).base_url:
                yield from _first(key_hosts.key_variables(one, environ), [key_hosts.host_of(url)], environ)
        if member.keys is not None:
            yield from member.keys(own, environ)
        else:
            asked = [*map(key_hosts.host_of, member.addresses(own, environ)), *member.hosts(own, environ)]
            yield from _first(member.key_variables(own), asked, environ)


def _first(names: tuple[str, ...], asked: Iterable[str], environ: Environ) -> Iterator[Pair]:
    if names:
        used = next((name for name in names if read_key(environ, name)), names[0])
        yield from (Pair(key=used, host=host) for host in asked)


def variables(config: BackendConfig) -> Iterator[str]:
    """Names of the variables that this config names itself, and that decide who pays."""
    member, own = _member_kind(config)
    yield from (one.api_key_env for one in member.asked(own) if one.api_key_env)
    yield from member.key_variables(own) if member.variables is None else member.variables(own)


def secrets(config: BackendConfig, environ: Environ) -> Iterator[tuple[str, str]]:
    """What is to be kept out of everything that is said: names to call it by, and values."""
    member, own = _member_kind(config)
    names = [*(one.api_key_env or "" for one in member.asked(own)), *member.key_variables(own)]
    yield from ((name, environ[name]) for name in names if name in environ)
    yield from member.secrets(own, environ)


def start_permissions(config: BackendConfig) -> tuple[Program, ...]:
    """Return the programs that run for it on this machine, as a person accepts them."""
    member, own = _member_kind(config)
    return tuple(StartOther(one) if isinstance(one, str) else one for one in member.starts(own))


def destination(config: BackendConfig, environ: Environ) -> tuple[str, str] | None:
    """Whom calls go to, and with whose key; None if it calls nobody."""
    member, own = _member_kind(config)
    if member.destination is not None:
        return member.destination(own, environ)
    for one in member.asked(own):
        return key_hosts.provider_for(one, environ).base_url.rstrip("/"), key_hosts.find_key(one, environ) or ""
    return _type_name(config), "\0".join(environ.get(name, "") for name in variables(config))


def concurrency(config: BackendConfig, environ: Environ) -> int:
    """How many calls at once whoever is asked stands."""
    member, own = _member_kind(config)
    first = next(iter(member.asked(own)), None)
    return LOCAL_CONCURRENCY if first and key_hosts.serves_here(first, environ) else member.concurrency


def get_unknown_price(config: BackendConfig, environ: Environ) -> UnknownPrice | None:
    """Return how calls of unknown price are counted; None: with their tokens only."""
    member, own = _member_kind(config)
    return member.unknown_price(own, environ)


def get_priced_model(config: BackendConfig) -> str:
    """Return the model whose price is looked up."""
    member, own = _member_kind(config)
    return member.priced_as(own) or config.model


def vendor_of(config: BackendConfig) -> str:
    """Who makes its model, as far as the provider tells; a scripted agent's is the name of its model."""
    member, own = _member_kind(config)
    return _type_name(config) if member.vendor is None else member.vendor(own)


def _type_name(config: BackendConfig) -> str:
    return config.adapter if isinstance(config, InstalledBackendConfig) else config.type
