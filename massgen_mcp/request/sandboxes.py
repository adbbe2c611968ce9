"""Which sandbox the commands and the MCP servers of a run get on this machine, and which servers cannot run.

Starts none. What is known of the machine is kept in the state directory.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.config import Config, HttpMcpServer, McpServer, StdioServer
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import find_home, known_levels
from massgen_mcp.sandbox import SandboxChoice, Wishes, choose

_ASKS_FOR_REAL_PATHS = "server-filesystem"
"""Of the protocol's authors: it serves no file whose real path it is not told."""


def unusable(server: StdioServer, choice: SandboxChoice) -> str | None:
    """Why the server cannot be started here, in words; None if it may be."""
    if not shutil.which(server.command):
        return f"there is no such program: {server.command}"
    if not server.sandbox:
        return None
    if choice.level is None:
        return f"{choice.why}; or set `sandbox: false` for this server"
    if choice.has_no_real_paths and any(_ASKS_FOR_REAL_PATHS in Path(argument).parts for argument in server.args):
        message = f"it needs the real paths of its files, and {choice.level} tells no program of any"
        return f"{message}; install bubblewrap, or set `sandbox: false` for this server, with `.` as its directory"
    return None


def server_places(config: Config, choices: Mapping[tuple[str, ...], SandboxChoice]) -> tuple[str, ...]:
    """Each server of each agent with where it runs, or why it cannot be started."""
    return tuple(
        f"{name} of {agent.id} ({_where(server, choices)})"
        for agent in config.agents
        for name, server in agent.mcp_servers.items()
    )


def _where(server: McpServer, choices: Mapping[tuple[str, ...], SandboxChoice]) -> str:
    match server:
        case HttpMcpServer():
            return "over HTTP"
        case StdioServer():
            choice = choices.get(server.network, SandboxChoice(None))
            if why := unusable(server, choice):
                return f"not started: {why}"
            return f"in {choice.level}" if server.sandbox else "outside the sandbox"


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
