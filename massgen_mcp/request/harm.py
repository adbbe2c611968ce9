"""What in a config needs a person's yes, by where the config came from. Decides; asks nobody and keeps nothing.

A config that a command finds by itself came with the directory, from whoever wrote that; one that an agent names may be
anybody's. Both run as they are while they ask for nothing that could harm: providers at their own hosts with their own
keys, servers of this machine without a key, reading within the project or what the call names, and no more money and
time than the call's or the user's own limits.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from massgen_mcp.config.access.acceptances import user_directory
from massgen_mcp.config.access.key_hosts import host_of, is_own_key
from massgen_mcp.config.access.members import addresses
from massgen_mcp.config.adjusted import RequestedLimits, with_limits
from massgen_mcp.config.diagnostics import on_one_line
from massgen_mcp.config.examples import example_name
from massgen_mcp.config.loader import config_places, is_team, load_config
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.orchestrator import BudgetConfig, ContextPath, TimeoutSettings
from massgen_mcp.config.providers.addresses import is_loopback
from massgen_mcp.config.providers.catalog import operators_rows, owner_of
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import Decide
from massgen_mcp.request.reach import KEY, NETWORK, READS, SANDBOX, SCRIPTS, WRITES, Reach, check_in

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
        scripts=decide not in (None, "vote"),
        limits=limits,
    )


def harmful(
    config: Config,
    reach: Reach,
    environ: Mapping[str, str],
    project: Path,
    granted: Granted,
    readable: Sequence[Path] = (),
) -> tuple[str, ...]:
    """What a config that nobody vouches for asks for and may not have unasked, in the words of `Reach.demands`.
    `readable`: the directories that it may read besides those that are granted.
    """
    harmless = {*_known_hosts(config, reach, environ)}
    harmless |= {f"{READS}{on_one_line(one)}" for one in reach.reads if _within(one, (*readable, *granted.readable))}
    harmless |= {f"{WRITES}{on_one_line(one)}" for one in reach.writes if _within(one, granted.writable)}
    harmless |= {f"starts: {check_in(command)}" for command in granted.checks}
    harmless |= {f"starts: {SCRIPTS}{SANDBOX}"} if granted.scripts else set()
    asked_usd, asked_tokens = granted.limits.max_usd or 0, 0
    if asked_usd and not reach.uncounted:
        asked_tokens = BudgetConfig(max_usd=asked_usd).most_tokens
    asked = (asked_usd, asked_tokens, granted.limits.max_seconds or 0)
    limited = with_limits(config, granted.limits)
    amounts = zip(
        reach.amounts(),
        _amounts(limited.budget, limited.timeout_settings),
        _get_own_amounts(project, environ, uncounted=reach.uncounted),
        asked,
        strict=True,
    )
    harmless |= {line for line, value, own, calls in amounts if value <= max(own, calls)}
    return tuple(line for line in reach.demands() if line not in harmless)


def vouched_for(named: Path, environ: Mapping[str, str]) -> bool:
    """Whether the config at this absolute path ships with the package, or lies in the user's own directory."""
    own = user_directory(environ).resolve()
    return example_name(named) is not None or named.parent.resolve().is_relative_to(own)


def outside(reach: Reach, project: Path) -> tuple[Path, ...]:
    """The paths that are not within the project."""
    paths = dict.fromkeys((*reach.reads, *reach.writes))
    return tuple(path for path in paths if not path.is_relative_to(project))


def beyond(reach: Reach, granted: Granted) -> tuple[str, ...]:
    """What an agent may not have of a config that is vouched for: paths that are not below those that may be read or
    written, MCP servers, and what commands may reach over the network, in the words of `Reach.demands`.
    """
    reads = (path for path in reach.reads if not _within(path, granted.readable))
    writes = (path for path in reach.writes if not _within(path, granted.writable))
    return (
        *(f"{READS}{on_one_line(path)}" for path in reads),
        *(f"{WRITES}{on_one_line(path)}" for path in writes),
        *(f"starts: {command}" for command in reach.commands if NETWORK in command),
        *reach.server_demands(),
    )


def _within(path: Path, directories: Sequence[Path]) -> bool:
    return any(path.is_relative_to(one) for one in directories)


def _known_hosts(config: Config, reach: Reach, environ: Mapping[str, str]) -> set[str]:
    """The hosts that may be asked, and their own keys: a host only if that holds for every address there is at it."""
    known: defaultdict[str, list[str]] = defaultdict(list)
    for url in addresses((agent.backend for agent in config.agents), environ):
        known[host_of(url)].append(url)
    hosts = {host for host, urls in known.items() if all(_is_known(url, environ) for url in urls)}
    keys = [pair for pair in reach.keys if all(is_own_key(pair.key, url, environ) for url in known[pair.host])]
    return {*(f"host: {host}" for host in hosts), *(f"{KEY}{pair.key} to {pair.host}" for pair in keys)}


def _is_known(url: str, environ: Mapping[str, str]) -> bool:
    """Not so somebody's resource at Azure: its host is the provider's, what stands behind it anybody's."""
    if is_loopback(url) or operators_rows(url, environ):
        return True
    owner = owner_of(url)
    return owner is not None and owner.type != AZURE


def _amounts(budget: BudgetConfig, timeouts: TimeoutSettings) -> tuple[float, float, float]:
    """Money, tokens and time, as `Reach.amounts` names them."""
    return budget.max_usd, budget.most_tokens, timeouts.orchestrator_timeout_seconds


def _get_own_amounts(project: Path, environ: Mapping[str, str], *, uncounted: bool) -> tuple[float, float, float]:
    """The amounts that need no yes: the user's own limits. Where tokens alone are to limit what calls of unknown price
    cost, that needs a yes unless the user's own config says so, too.
    """
    budget, timeouts = _own_limits(project, environ)
    usd, tokens, seconds = _amounts(budget, timeouts)
    if uncounted and budget.bounds_prices:
        tokens = 0
    return usd, tokens, seconds


def _own_limits(project: Path, environ: Mapping[str, str]) -> tuple[BudgetConfig, TimeoutSettings]:
    """The user's own, else our defaults."""
    _, own = config_places(project, environ)
    with suppress(MassgenError):
        if is_team(own):
            config = load_config(own, environ=environ, base_dir=project)
            return config.budget, config.timeout_settings
    return BudgetConfig(), TimeoutSettings()
