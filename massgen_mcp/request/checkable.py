"""Whether what judges answers can do so: checks on files that the run is given, and in a sandbox; a judge."""

from collections.abc import Mapping

from massgen_mcp.config.access.key_hosts import vendor_of
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.sandboxes import sandbox_of_checks
from massgen_mcp.sandbox import SandboxChoice


def require_files(config: Config) -> None:
    """Checks need something to judge. Raises `MassgenError` invalid_arguments."""
    if config.orchestrator.checks and not config.orchestrator.context_paths:
        raise MassgenError(
            "invalid_arguments",
            "checks judge what answers change in a directory of yours; name it in context_paths, or leave checks out",
        )


def require_neutral_judge(config: Config) -> None:
    """Some answer has to be by a model that is not of the judge's vendor. Raises `MassgenError` config_invalid."""
    vendors = {agent.id: vendor_of(agent.backend) for agent in config.agents}
    judge = config.orchestrator.judge
    if config.orchestrator.decide == "judge" and judge and len(set(vendors.values())) == 1:
        raise MassgenError(
            "config_invalid",
            f"orchestrator.judge: all agents are of the judge's vendor, {vendors[judge]}; name a judge of another one",
        )


async def require_sandbox(config: Config, environ: Mapping[str, str]) -> None:
    """Nothing is begun whose checks could not be run. Raises `MassgenError` sandbox_denied."""
    if not config.orchestrator.checks:
        return
    choice = await sandbox_of_checks(config, environ)
    if choice.level is None:
        raise MassgenError("sandbox_denied", no_sandbox(config, choice))


def no_sandbox(config: Config, choice: SandboxChoice) -> str:
    """Why the checks cannot run."""
    named = ", ".join(f"`{command}`" for command in config.orchestrator.checks)
    return f"the checks {named} run in a sandbox only: {choice.why}"
