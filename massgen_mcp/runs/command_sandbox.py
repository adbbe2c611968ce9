"""Which sandbox the commands of a run get on this machine; what is known of it is kept in the state directory."""

from collections.abc import Mapping
from pathlib import Path

from massgen_mcp.config.models import Config
from massgen_mcp.home import find_home
from massgen_mcp.sandbox import Choice, choose


def known_levels(environ: Mapping[str, str]) -> Path:
    """The file that says which levels hold on this machine."""
    return find_home(environ).path / "sandbox.json"


async def chosen_sandbox(config: Config, environ: Mapping[str, str]) -> Choice | None:
    """The level for the config's commands; None where it has none. Raises `MassgenError` for an unusable variable."""
    commands = config.orchestrator.commands
    if not commands.enabled:
        return None
    return await choose(commands.sandbox, known_levels(environ), network=commands.network, image=commands.image)


def told_of(choice: Choice | None) -> str:
    """In words, for the record of a run and for whoever starts it; empty where there are no commands."""
    if choice is None:
        return ""
    return choice.level or f"none: {choice.why}"
