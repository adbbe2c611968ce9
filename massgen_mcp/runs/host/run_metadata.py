"""What a run says of itself when it begins: its first event, and `execution_metadata.yaml`."""

import sys
import time
from collections.abc import Collection, Mapping

from massgen_mcp import __version__
from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.config import Config
from massgen_mcp.events.parts import AgentInfo, public_agent_name
from massgen_mcp.events.run import RunStarted
from massgen_mcp.runs.doctor.command_sandbox import sandbox_names
from massgen_mcp.runs.engine import FrozenRequest
from massgen_mcp.sandbox import SandboxChoice


def started_event(
    run_id: str, request: FrozenRequest, choices: Mapping[CommandsConfig, SandboxChoice], servers: tuple[str, ...]
) -> RunStarted:
    config = request.config
    return RunStarted(
        run_id=run_id,
        question=request.question,
        parent=request.nesting.parent if request.nesting else None,
        agents=agent_infos(config),
        max_usd=config.budget.max_usd,
        max_tokens=config.budget.max_tokens,
        sandbox=sandbox_names(choices.values()),
        servers=servers,
    )


def agent_infos(config: Config) -> tuple[AgentInfo, ...]:
    return tuple(
        AgentInfo(name=public_agent_name(place), id=agent.id, backend=agent.kind, model=agent.backend.model)
        for place, agent in enumerate(config.agents)
    )


def run_metadata(
    run_id: str, request: FrozenRequest, choices: Mapping[CommandsConfig, SandboxChoice], servers: tuple[str, ...]
) -> dict[str, object]:
    nesting = {"parent_run_id": request.nesting.parent, "depth": request.nesting.depth} if request.nesting else {}
    sandbox = {"sandbox": _sandbox(choices.values())} if choices else {}
    return {
        **sandbox,
        **({"mcp_servers": [*servers]} if servers else {}),
        "run_id": run_id,
        **nesting,
        "query": request.question,
        "timestamp": time.time(),
        "massgen_mcp_version": __version__,
        "python_version": sys.version.split()[0],
        "config": request.config.model_dump(mode="json", exclude_defaults=True),
    }


def _sandbox(choices: Collection[SandboxChoice]) -> dict[str, object]:
    """What the agents' commands run in; of several sandboxes all that is to be said."""
    return {
        "level": ", ".join(dict.fromkeys(choice.level for choice in choices if choice.level)) or None,
        "why": "; ".join(dict.fromkeys(choice.why for choice in choices if choice.why)),
        "notes": [*dict.fromkeys(note for choice in choices for note in choice.notes)],
    }
