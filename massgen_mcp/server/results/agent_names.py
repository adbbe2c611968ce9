"""One agent has one name in every reply, the id of its config, with its model beside it.

The records of a run and its files call agents `agent_a`, `agent_b`, …; a caller may name an agent so, too.
"""

from collections.abc import Iterable

from massgen_mcp.config.models.config import Config
from massgen_mcp.events.parts import AgentInfo
from massgen_mcp.run_state.agents import AgentState
from massgen_mcp.run_state.state import RunState

MODEL_CHARACTERS = 24
"""Of a model's name beside each mention of an agent; the team has it whole."""


def id_of(run: RunState, name: str) -> str:
    """The id of the agent that the record calls `name`."""
    return run.agents[name].info.id


def team_of(config: Config) -> dict[str, str]:
    """Each agent's id, and its model with the provider's name."""
    return {agent.id: f"{agent.backend.type}/{agent.backend.model}" for agent in config.agents}


def team_of_run(run: RunState) -> dict[str, str]:
    infos = (agent.info for agent in run.agents.values())
    return {info.id: f"{info.backend}/{info.model}" for info in infos}


def team_text(team: dict[str, str]) -> str:
    return ", ".join(f"{agent} ({model})" for agent, model in team.items())


def with_model(info: AgentInfo) -> str:
    """`claude (claude-opus-5-5)`; nothing is said twice where the id holds the model's name already."""
    model = info.model.rpartition("/")[2]
    return info.id if model in info.id else f"{info.id} ({model[:MODEL_CHARACTERS]})"


def ids(agents: Iterable[AgentState]) -> str:
    return ", ".join(agent.info.id for agent in agents)
