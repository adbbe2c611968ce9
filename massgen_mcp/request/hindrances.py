"""What stands in the way of what a config wants on this machine: packages that are not there, and commands that will
not be.
"""

import re
from collections.abc import Iterator, Mapping

from massgen_mcp.config.loader import not_installed
from massgen_mcp.config.models.config import Config

_RUNS_MASSGEN = re.compile(r"(?:^|[\s`'\"(])massgen(?:-mcp)?\s+(?:-|@|[\"']|run\b|ask\b)", re.MULTILINE)


def hindrances(config: Config, environ: Mapping[str, str]) -> list[str]:
    """A sentence each."""
    missing = [f"{agent.id}: {lack}." for agent in config.agents if (lack := not_installed(agent, environ))]
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
