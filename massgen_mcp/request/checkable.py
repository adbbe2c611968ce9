"""Whether a config can be run here as it is meant: checks have files to judge and a sandbox, a judge has whom to judge,
directories that a run may change lie apart; and what else stands in the way, such as packages that are not there.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import combinations
from pathlib import Path

from massgen_mcp.config.access.members import lack, vendor_of
from massgen_mcp.config.diagnostics import show_name
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.sandboxes import sandbox_of_checks
from massgen_mcp.sandbox import SandboxChoice


def require_apart(config: Config) -> None:
    """Agents have a copy of each directory, so one that lies in another one would be changed twice, and differently.
    Raises `MassgenError` invalid_arguments.
    """
    given = [context.path for context in config.orchestrator.context_paths if context.permission == "write"]
    for one, other in combinations(given, 2):
        around_one, around_other = _holds(other, one), _holds(one, other)
        if not (around_one or around_other):
            continue
        outer, inner = (other, one) if around_one else (one, other)
        where = "is the same as" if around_one and around_other else "lies in"
        message = f"{show_name(inner)} {where} {show_name(outer)}, and both are given with permission write"
        raise MassgenError("invalid_arguments", f"context_paths: {message}; give {show_name(outer)} alone")


def _holds(outer: str, inner: str) -> bool:
    """Whether one is the other or lies in it, whatever names and links lead there."""
    with suppress(OSError, RuntimeError):  # of what is not there any more
        real, wanted = Path(inner).resolve(), Path(outer).stat()
        return any(os.path.samestat(wanted, place.stat()) for place in (real, *real.parents))
    return False


_RUNS_MASSGEN = re.compile(r"(?:^|[\s`'\"(])massgen(?:-mcp)?\s+(?:-|@|[\"']|run\b|ask\b)", re.MULTILINE)


def hindrances(config: Config, environ: Mapping[str, str]) -> list[str]:
    """A sentence each."""
    missing = [f"{agent.id}: {fault}." for agent in config.agents if (fault := lack(agent.backend, environ))]
    return [*dict.fromkeys(missing), *_without_nested_runs(config)]


def _without_nested_runs(config: Config) -> Iterator[str]:
    found = [
        agent.id
        for agent in config.agents
        if config.commands_of(agent).enabled and agent.system_message and _RUNS_MASSGEN.search(agent.system_message)
    ]
    if found and config.nested is None:
        yield (
            f"{', '.join(found)}: the instructions speak of running massgen, which is not there in the sandbox of "
            "commands. For runs inside this one add `nested: {}`: agents then have the tool `delegate` "
            "(docs/nested-runs.md)."
        )


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
