"""Agent CLIs that speak the Agent Client Protocol."""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, cast

from massgen_mcp.config.access.acceptances import Pair
from massgen_mcp.config.access.acp_agents import (
    MAX_LOGIN_BYTES,
    PRESETS,
    find_program,
    hosts_of,
    own_login,
    preset_of,
    shown_name,
    variables_of,
)
from massgen_mcp.config.access.agent_types import CLI_CONCURRENCY, AgentType, Environ
from massgen_mcp.config.access.key_hosts import is_own_key
from massgen_mcp.config.access.members import require_parts
from massgen_mcp.config.access.permissions import StartAgentCli
from massgen_mcp.config.access.prices import UnknownPrice
from massgen_mcp.config.environment import called_a_secret, is_model_key, is_set
from massgen_mcp.config.models.backends import ACP_PRESETS, AcpBackendConfig, AcpPreset
from massgen_mcp.config.own_clis import OwnCli
from massgen_mcp.config.providers.catalog import NEWEST, named_provider
from massgen_mcp.home import known_levels
from massgen_mcp.sandbox import Wishes, choose

if TYPE_CHECKING:
    from massgen_mcp.backends.adapter import Making
    from massgen_mcp.backends.own_loop import Agent

SECRET_LENGTH = 16


class Acp(AgentType[AcpBackendConfig]):
    name = "acp"
    misnamed = f"expected acp/PRESET or acp/PRESET/MODEL, where PRESET is one of {', '.join(ACP_PRESETS)}"
    limitable = False
    concurrency = CLI_CONCURRENCY
    team_rank = 1

    def name_backend(self, model: str, asked: Mapping[str, str]) -> Mapping[str, object]:
        del asked
        preset, _, model = model.partition("/")
        return {"preset": preset, "model": model or "default"}

    def get_vendor(self, config: AcpBackendConfig) -> str:
        return preset_of(config).vendor

    def bound_output(self, config: AcpBackendConfig) -> int | None:
        return preset_of(config).most_output

    def get_priced_model(self, config: AcpBackendConfig) -> str | None:
        if config.model != "default":
            return None
        return NEWEST.get(preset_of(config).vendor)

    def bound_unknown_price(self, config: AcpBackendConfig, environ: Environ) -> UnknownPrice | None:
        """Bound the calls of an agent whose key pays for tokens; a subscription, or an unknown vendor, has no bound."""
        del environ
        vendor = preset_of(config).vendor
        if config.preset is None or config.login != "key" or vendor not in NEWEST:
            return None
        return UnknownPrice(named_provider(vendor).base_url)

    def find_lack(self, config: AcpBackendConfig, environ: Environ) -> str | None:
        preset, name = preset_of(config), shown_name(config)
        if find_program(config, environ) is None:
            return ": ".join(filter(None, (f"acp needs the program {preset.program}", preset.install)))
        if config.login == "own" and own_login(config, environ) is None:
            return f"login: own requires you to be logged in to {name}; log in first, or set login: key"
        for key in config.env:
            if is_model_key(key) and key not in preset.key_variables and not _may_have(config, key, environ):
                return f"env: {key} is a provider's key, and {name} could send it to other hosts"
        return None

    def list_hosts(self, config: AcpBackendConfig, environ: Environ) -> Iterable[str]:
        del environ
        return (host.removesuffix(":443") for host in hosts_of(config))

    def list_missing(self, config: AcpBackendConfig, environ: Environ) -> Iterable[tuple[str, ...]]:
        groups: list[tuple[str, ...]] = [(name,) for name in config.env]
        if config.login == "key" and (keys := preset_of(config).key_variables):
            groups.insert(0, (*keys, *config.env))
        return [names for names in groups if not any(is_set(environ, name) for name in names)]

    def list_keys(self, config: AcpBackendConfig, environ: Environ) -> Iterator[Pair]:
        for name in variables_of(config):
            if is_set(environ, name) and (is_model_key(name) or called_a_secret(name)):
                yield from (Pair(key=name, host=host) for host in self.list_hosts(config, environ))

    def list_variables(self, config: AcpBackendConfig) -> Iterable[str]:
        return filter(None, (*variables_of(config), preset_of(config).directory[0]))

    def list_secrets(self, config: AcpBackendConfig, environ: Environ) -> Iterator[tuple[str, str]]:
        if (file := own_login(config, environ)) is None:
            return
        try:
            with file.open("rb") as opened:
                texts = [*_find_secrets(json.loads(opened.read(MAX_LOGIN_BYTES)))]
        except (OSError, ValueError, RecursionError):
            return
        yield from ((f"from your {shown_name(config)} login", text) for text in texts)

    def list_programs(self, config: AcpBackendConfig) -> Iterable[StartAgentCli]:
        preset = preset_of(config)
        return (
            StartAgentCli(
                command=(preset.program, *preset.arguments),
                own_login=config.login == "own",
                variables=variables_of(config),
                sandboxed=not config.outside,
            ),
        )

    def get_destination(self, config: AcpBackendConfig, environ: Environ) -> tuple[str, str]:
        given = [environ.get(variable, "") for variable in self.list_variables(config)]
        return f"acp/{shown_name(config)}", "\0".join(given)

    async def find_clis(self, environ: Environ) -> list[OwnCli]:
        """Return the CLIs but for Claude Code, which has a type of its own."""
        found = [await _find_cli(preset, environ) for preset in PRESETS if preset != "claude_code"]
        return [cli for cli in found if cli is not None]

    def make_agent(self, config: AcpBackendConfig, making: "Making") -> "Agent":
        require_parts(config, making.environ)
        from massgen_mcp.backends.acp.agent import AcpAgent

        program = find_program(config, making.environ) or ""
        return AcpAgent(config, program, making.environ, making.private, making.redactor)


async def _find_cli(name: AcpPreset, environ: Environ) -> OwnCli | None:
    preset = PRESETS[name]
    config = AcpBackendConfig(type="acp", preset=name, login="own")
    speaks = find_program(config, environ)
    program = speaks or shutil.which(preset.own_cli[1], path=environ.get("PATH"))
    if program is None:
        return None
    fit, place = True, "sandboxed"
    if not speaks:
        fit, place = False, f"to use it in a team, run `{preset.install}`"
    elif not (await choose(Wishes("bubblewrap"), known_levels(environ))).level:
        fit, place = preset.asks, "requires bubblewrap"
        if fit:
            place = "outside the sandbox, without shell access"
    keys = tuple(key for key in preset.key_variables if environ.get(key))
    return OwnCli(name, config, program, own_login(config, environ) is not None, keys, place, fit)


def _may_have(config: AcpBackendConfig, key: str, environ: Environ) -> bool:
    hosts = hosts_of(config)
    enclosed = config.enclosure == "required" and bool(hosts)
    return enclosed and all(is_own_key(key, f"https://{host}", environ) for host in hosts)


def _find_secrets(value: object) -> Iterator[str]:
    """Yield the long texts of a login file."""
    match value:
        case str() if len(value) >= SECRET_LENGTH and value.isprintable() and " " not in value:
            yield value
        case dict():
            for each in cast("dict[str, object]", value).values():
                yield from _find_secrets(each)
        case list():
            for each in cast("list[object]", value):
                yield from _find_secrets(each)
        case _:
            pass


TYPE = Acp()
