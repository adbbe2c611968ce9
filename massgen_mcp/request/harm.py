"""What in a config needs a person's yes, by where the config came from. Decides; asks nobody and keeps nothing.

A config that a command finds by itself came with the directory, from whoever wrote that. It runs as it is while it asks
for nothing that could harm: providers at their own hosts with their own keys, servers of this machine without a key,
reading within the project, and no more money and time than the user's own limits.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from massgen_mcp.config.addresses import is_loopback
from massgen_mcp.config.key_hosts import AskedBackend, address_of, asked_by, host_of, is_own_key
from massgen_mcp.config.loader import config_places, is_config, load_config
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.http_backends import AzureBackendConfig
from massgen_mcp.config.models.limits import BudgetConfig, TimeoutConfig
from massgen_mcp.config.providers import operators_rows, owner_of
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.reach import NETWORK, Reach, on_one_line


def harmful(config: Config, reach: Reach, environ: Mapping[str, str], project: Path) -> tuple[str, ...]:
    """What a found config asks for that nobody may ask for unasked, in the words of `Reach.demands`."""
    asked = asked_by(agent.backend for agent in config.agents)
    addresses = {host_of(url): url for one in asked if (url := address_of(one, environ))}
    harmless = {f"host: {host}" for host, url in addresses.items() if _is_known(url, environ)}
    harmless -= {f"host: {host_of(url)}" for one in asked if (url := _customers(one, environ))}
    harmless |= {
        f"key: {pair.key} to {pair.host}" for pair in reach.keys if is_own_key(pair.key, addresses[pair.host], environ)
    }
    harmless |= {f"reads: {on_one_line(path)}" for path in reach.reads if path.is_relative_to(project)}
    budget, timeouts = _limits(project, environ)
    most = (budget.max_usd, budget.max_tokens, timeouts.orchestrator_timeout_seconds)
    wanted = (reach.max_usd, reach.max_tokens, reach.max_seconds)
    spending = reach.demands()[-3:]
    harmless |= {line for line, limit, value in zip(spending, most, wanted, strict=True) if value <= limit}
    return tuple(line for line in reach.demands() if line not in harmless)


def outside(reach: Reach, project: Path) -> tuple[Path, ...]:
    """The paths that are not within the project."""
    paths = dict.fromkeys((*reach.reads, *reach.writes))
    return tuple(path for path in paths if not path.is_relative_to(project))


def beyond(reach: Reach, granted: Sequence[Path], writable: Sequence[Path]) -> tuple[str, ...]:
    """The paths that are not below those that may be read or written, MCP servers, and what commands may reach over the
    network, in the words of `Reach.demands`.
    """
    reads = (path for path in reach.reads if not any(path.is_relative_to(one) for one in granted))
    writes = (path for path in reach.writes if not any(path.is_relative_to(one) for one in writable))
    return (
        *(f"reads: {on_one_line(path)}" for path in reads),
        *(f"writes: {on_one_line(path)}" for path in writes),
        *(f"starts: {command}" for command in reach.commands if NETWORK in command),
        *reach.server_demands(),
    )


def _is_known(url: str, environ: Mapping[str, str]) -> bool:
    return is_loopback(url) or owner_of(url) is not None or bool(operators_rows(url, environ))


def _customers(backend: AskedBackend, environ: Mapping[str, str]) -> str | None:
    """The address of somebody's own Azure resource: its host is the provider's, what stands behind it anybody's."""
    if not isinstance(backend, AzureBackendConfig):
        return None
    url = address_of(backend, environ)
    return url if url and not operators_rows(url, environ) else None


def _limits(project: Path, environ: Mapping[str, str]) -> tuple[BudgetConfig, TimeoutConfig]:
    """The user's own, else our defaults."""
    _, own = config_places(project, environ)
    with suppress(MassgenError):
        if is_config(own):
            config = load_config(own, environ=environ, base_dir=project)
            return config.budget, config.timeout_settings
    return BudgetConfig(), TimeoutConfig()
