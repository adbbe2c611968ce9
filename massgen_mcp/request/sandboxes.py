"""Which sandbox the commands of a run get on this machine; what is known of it is kept in the state directory."""

from collections.abc import Mapping
from pathlib import Path

from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.config import Config, StdioServer
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import find_home
from massgen_mcp.sandbox import SandboxChoice, Wishes, choose


def known_levels(environ: Mapping[str, str]) -> Path:
    """The file that says which levels hold on this machine."""
    return find_home(environ).path / "sandbox.json"


async def chosen_sandboxes(config: Config, environ: Mapping[str, str]) -> dict[CommandsConfig, SandboxChoice]:
    """The level for what is said of commands, for each thing that is said of agents who have any.

    Raises `MassgenError` for an unusable variable.
    """
    return {commands: await _chosen(commands, environ) for commands in config.all_commands}


async def sandbox_of_checks(config: Config, environ: Mapping[str, str]) -> SandboxChoice:
    """The level for checks, by what is said of the team's commands. Raises as `chosen_sandboxes`."""
    return await _chosen(config.orchestrator.commands, environ)


async def sandboxes_of_servers(config: Config, environ: Mapping[str, str]) -> dict[tuple[str, ...], SandboxChoice]:
    """The sandbox for the MCP servers that run in one, by what they may connect to. Raises as `chosen_sandboxes`."""
    servers = [server for agent in config.agents for server in agent.mcp_servers.values()]
    wanted = dict.fromkeys(one.network for one in servers if isinstance(one, StdioServer) and one.sandbox)
    return {network: await choose(Wishes(network=network), known_levels(environ)) for network in wanted}


async def require_programs(config: Config, environ: Mapping[str, str]) -> None:
    """Raises `MassgenError("config_invalid")` where a container or an image is asked for that is not to be had: agents
    count on its programs, so they are not started without.
    """
    for commands in config.all_commands:
        if commands.in_container or commands.image_archive is not None:
            choice = await _chosen(commands, environ)
            if choice.level is None:
                raise MassgenError("config_invalid", f"agents' commands have no container: {choice.why}")


async def _chosen(commands: CommandsConfig, environ: Mapping[str, str]) -> SandboxChoice:
    archive = None if commands.image_archive is None else Path(commands.image_archive)
    images = find_home(environ).path / "images"
    wishes = Wishes(
        commands.sandbox, commands.network, commands.open_network, commands.image, archive, images if archive else None
    )
    return await choose(wishes, known_levels(environ))
