"""What in a config needs a person's yes, by where the config came from. Decides; asks nobody and keeps nothing.

A config that a command finds by itself came with the directory, from whoever wrote that; one that an agent names may be
anybody's. Both run as they are while they ask for nothing that could harm: providers at their own hosts with their own
keys, model servers of this machine without a key, reading within the project or what the call names, and no more money
and time than the call's or the user's own limits.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

from massgen_mcp.config.access.acceptances import user_directory
from massgen_mcp.config.access.key_hosts import host_of, is_own_key
from massgen_mcp.config.access.members import addresses
from massgen_mcp.config.access.permissions import (
    ApplyChanges,
    AskHost,
    AskServer,
    CommandPlace,
    LoadAdapter,
    Permission,
    ReadPath,
    RunCheck,
    RunCommands,
    RunScripts,
    RunSetup,
    SendFields,
    SendKey,
    SetPrice,
    SetVariable,
    SpendMoney,
    SpendTokens,
    StartAgentCli,
    StartClaudeCode,
    StartOther,
    StartServer,
    TakeTime,
    UseNetwork,
    WritePath,
)
from massgen_mcp.config.adjusted import RequestedLimits, with_limits
from massgen_mcp.config.examples import example_name
from massgen_mcp.config.loader import config_places, is_team, load_config
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.orchestrator import BudgetConfig, ContextPath, TimeoutSettings
from massgen_mcp.config.providers.addresses import is_loopback
from massgen_mcp.config.providers.catalog import is_usual_server, operators_rows, owner_of
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import STRATEGIES, Decide
from massgen_mcp.request.reach import Reach

AZURE = "azure_openai"


@dataclass(frozen=True, slots=True)
class Granted:
    """What the call itself asks for: a config that asks for the same needs no second yes. Paths are absolute and free
    of links.
    """

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    checks: tuple[str, ...] = ()
    scripts: bool = False
    """Whether scripts that agents write may run."""
    limits: RequestedLimits = field(default_factory=RequestedLimits)


def granted_by(
    paths: Sequence[ContextPath], checks: Sequence[str], decide: Decide | None, limits: RequestedLimits
) -> Granted:
    """What a call with these arguments grants."""
    return Granted(
        readable=tuple(Path(one.path).resolve() for one in paths),
        writable=tuple(Path(one.path).resolve() for one in paths if one.permission == "write"),
        checks=tuple(checks),
        scripts=decide is not None and STRATEGIES[decide].runs_scripts,
        limits=limits,
    )


def harmful(
    config: Config,
    reach: Reach,
    environ: Mapping[str, str],
    project: Path,
    granted: Granted,
    readable: Sequence[Path] = (),
) -> tuple[Permission, ...]:
    """Return what a config that nobody vouches for asks for and may not have unasked. `readable`: the directories that
    it may read besides those that are granted.
    """
    may_read = (*readable, *granted.readable)
    known = _known_hosts(config, reach, environ)
    usual = _usual_amounts(config, reach, environ, project, granted)

    def is_harmless(one: Permission) -> bool:
        match one:
            case AskHost() | SendKey():
                return one in known
            case ReadPath():
                return _within(one.path, may_read)
            case WritePath():
                return _within(one.path, granted.writable)
            case RunCheck(command=command, place=place):
                return place == CommandPlace() and command in granted.checks
            case RunScripts(place=place):
                return place == CommandPlace() and granted.scripts
            case SpendMoney() | SpendTokens() | TakeTime():
                return one in usual
            case (
                ApplyChanges() | StartClaudeCode() | StartAgentCli() | LoadAdapter() | StartOther() | RunCommands()
                | UseNetwork() | RunSetup() | StartServer() | AskServer() | SetVariable() | SetPrice() | SendFields()
            ):  # fmt: skip
                return False
            case _:
                assert_never(one)

    return tuple(one for one in reach.permissions if not is_harmless(one))


def vouched_for(named: Path, environ: Mapping[str, str]) -> bool:
    """Whether the config at this absolute path ships with the package, or lies in the user's own directory."""
    own = user_directory(environ).resolve()
    return example_name(named) is not None or named.parent.resolve().is_relative_to(own)


def outside(reach: Reach, project: Path) -> tuple[Path, ...]:
    """The paths that are not within the project."""
    paths = dict.fromkeys((*reach.reads, *reach.writes))
    return tuple(path for path in paths if not path.is_relative_to(project))


def beyond(reach: Reach, granted: Granted) -> tuple[Permission, ...]:
    """Return what an agent may not have of a config that is vouched for: paths that are not below those that may be
    read or written, MCP servers, what commands may reach over the network, and programs with all the user's rights.
    """

    def is_allowed(one: Permission) -> bool:
        match one:
            case ReadPath():
                return _within(one.path, granted.readable)
            case WritePath():
                return _within(one.path, granted.writable)
            case StartServer() | AskServer() | UseNetwork() | LoadAdapter() | StartOther():
                return False
            case StartAgentCli(sandboxed=sandboxed):
                return sandboxed
            case (
                ApplyChanges() | AskHost() | SendKey() | StartClaudeCode() | RunCommands() | RunSetup() | RunCheck()
                | RunScripts() | SetVariable() | SetPrice() | SendFields() | SpendMoney() | SpendTokens() | TakeTime()
            ):  # fmt: skip
                return True
            case _:
                assert_never(one)

    return tuple(one for one in reach.permissions if not is_allowed(one))


def _within(path: Path, directories: Sequence[Path]) -> bool:
    return any(path.is_relative_to(one) for one in directories)


def _known_hosts(config: Config, reach: Reach, environ: Mapping[str, str]) -> frozenset[Permission]:
    """The hosts that may be asked, and their own keys: a host only if that holds for every address there is at it."""
    urls_of: defaultdict[str, list[str]] = defaultdict(list)
    for url in addresses((agent.backend for agent in config.agents), environ):
        urls_of[host_of(url)].append(url)
    hosts = [host for host, urls in urls_of.items() if all(_is_known(url, environ) for url in urls)]
    keys = [pair for pair in reach.keys if all(is_own_key(pair.key, url, environ) for url in urls_of[pair.host])]
    return frozenset((*map(AskHost, hosts), *(SendKey(pair.key, pair.host) for pair in keys)))


def _is_known(url: str, environ: Mapping[str, str]) -> bool:
    """Not so somebody's resource at Azure: its host is the provider's, what stands behind it anybody's."""
    if operators_rows(url, environ):
        return True
    if is_loopback(url):
        return is_usual_server(url)
    owner = owner_of(url)
    return owner is not None and owner.type != AZURE


def _usual_amounts(
    config: Config, reach: Reach, environ: Mapping[str, str], project: Path, granted: Granted
) -> frozenset[Permission]:
    """Return the config's amounts that exceed neither the user's own limits nor those of the call."""
    limited, asked = with_limits(config, granted.limits), granted.limits
    own_budget, own_timeouts = _own_limits(project, environ)
    own_tokens, asked_tokens = own_budget.most_tokens, 0
    if reach.tokens.uncounted:
        own_tokens = 0 if own_budget.bounds_prices else own_tokens
    elif asked.max_usd:
        asked_tokens = BudgetConfig(max_usd=asked.max_usd).most_tokens
    usual: list[Permission] = []
    if limited.budget.max_usd <= max(own_budget.max_usd, asked.max_usd or 0):
        usual.append(SpendMoney(config.budget.max_usd))
    if limited.budget.most_tokens <= max(own_tokens, asked_tokens):
        usual.append(reach.tokens)
    if limited.timeout_settings.orchestrator_timeout_seconds <= max(
        own_timeouts.orchestrator_timeout_seconds, asked.max_seconds or 0
    ):
        usual.append(TakeTime(config.timeout_settings.orchestrator_timeout_seconds))
    return frozenset(usual)


def _own_limits(project: Path, environ: Mapping[str, str]) -> tuple[BudgetConfig, TimeoutSettings]:
    """The user's own, else our defaults."""
    _, own = config_places(project, environ)
    with suppress(MassgenError):
        if is_team(own):
            config = load_config(own, environ=environ, base_dir=project)
            return config.budget, config.timeout_settings
    return BudgetConfig(), TimeoutSettings()
