"""Whether the checks of a config can be run here: on files that the run is given, and in a sandbox."""

from collections.abc import Mapping
from pathlib import Path

from massgen_mcp.config.models import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import find_home
from massgen_mcp.sandbox import Choice, choose


def known_levels(environ: Mapping[str, str]) -> Path:
    """The file that says which levels of the sandbox hold on this machine."""
    return find_home(environ).path / "sandbox.json"


async def sandbox_of(config: Config, environ: Mapping[str, str]) -> Choice:
    """The level for commands of agents and for checks. Raises `MassgenError` for an unusable variable."""
    commands = config.orchestrator.commands
    return await choose(commands.sandbox, known_levels(environ), network=commands.network, image=commands.image)


def require_files(config: Config) -> None:
    """Checks need something to judge. Raises `MassgenError` invalid_arguments."""
    if config.orchestrator.checks and not config.orchestrator.context_paths:
        raise MassgenError(
            "invalid_arguments",
            "checks judge what answers change in a directory of yours; name it in context_paths, or leave checks out",
        )


async def require_sandbox(config: Config, environ: Mapping[str, str]) -> None:
    """Nothing is begun whose checks could not be run. Raises `MassgenError` sandbox_denied."""
    if not config.orchestrator.checks:
        return
    choice = await sandbox_of(config, environ)
    if choice.level is None:
        raise MassgenError("sandbox_denied", no_sandbox(config, choice))


def no_sandbox(config: Config, choice: Choice) -> str:
    """Why the checks cannot run."""
    named = ", ".join(f"`{command}`" for command in config.orchestrator.checks)
    return f"the checks {named} run in a sandbox only: {choice.why}"
