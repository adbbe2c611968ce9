"""Which sandbox the commands of a run get on this machine; what is known of it is kept in the state directory."""

from collections.abc import Mapping
from pathlib import Path

from massgen_mcp.config.models import CONTAINERS, CommandsConfig, Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import find_home
from massgen_mcp.sandbox import Choice, Wishes, choose


def known_levels(environ: Mapping[str, str]) -> Path:
    """The file that says which levels hold on this machine."""
    return find_home(environ).path / "sandbox.json"


async def chosen_sandboxes(config: Config, environ: Mapping[str, str]) -> dict[CommandsConfig, Choice]:
    """The level for what is said of commands, for each thing that is said of agents who have any.

    Raises `MassgenError` for an unusable variable.
    """
    return {commands: await _chosen(commands, environ) for commands in config.all_commands}


async def require_programs(config: Config, environ: Mapping[str, str]) -> None:
    """Raises `MassgenError("config_invalid")` where a container or an image is asked for that is not to be had: agents
    count on its programs, so they are not started without.
    """
    for commands in config.all_commands:
        if commands.sandbox in CONTAINERS or commands.image_archive is not None:
            choice = await _chosen(commands, environ)
            if choice.level is None:
                raise MassgenError("config_invalid", f"agents' commands have no container: {choice.why}")


async def _chosen(commands: CommandsConfig, environ: Mapping[str, str]) -> Choice:
    archive = None if commands.image_archive is None else Path(commands.image_archive)
    images = find_home(environ).path / "images"
    wishes = Wishes(commands.sandbox, commands.network, commands.image, archive, images)
    return await choose(wishes, known_levels(environ))
