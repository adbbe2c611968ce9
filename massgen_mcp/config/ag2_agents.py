"""Agents of the AG2 framework: whether it is installed here, and what of AG2's own way of writing configs is taken.

Must not import AG2. What would run commands outside of a sandbox, or bring a team of its own, is refused by name.
"""

import importlib.util
from collections.abc import Mapping

from massgen_mcp.config.diagnostics import Problem
from massgen_mcp.config.yaml_reader import Place, Plain

EXTRA = 'pip install "massgen-mcp[ag2]"'

_OF_THE_MODEL = ("model", "base_url", "api_key", "api_key_env")
"""What may stand at the backend itself, as it does for every other type, if nothing else is said of the agent."""

_GROUPS = "AG2's group chats are not supported; name each AG2 agent as an agent of this team"
_FALLBACKS = "expected one model; for a choice of models name several agents"
_LOCAL = "an executor of AG2's runs commands on this machine outside of any sandbox, so it is refused; leave it out"
_DOCKER = "commands do not run in Docker here; leave it out"


def lack() -> str | None:
    """What has to be installed before an AG2 agent can work here; None when nothing is missing."""
    return None if importlib.util.find_spec("ag2") is not None else f"ag2 needs an extra: {EXTRA}"


def shape(backend: Mapping[str, Plain], place: Place) -> tuple[dict[str, Plain], list[Problem]]:
    """A backend of type `ag2` in the canonical form, and what in it is refused, each at its own place."""
    plain, problems = dict(backend), list[Problem]()
    if "group_config" in plain:
        del plain["group_config"]
        problems.append(Problem((*place, "group_config"), _GROUPS))
    if "agent_config" not in plain and "model" in plain:
        plain["agent_config"] = {"llm_config": {key: plain.pop(key) for key in _OF_THE_MODEL if key in plain}}
    agent = plain.get("agent_config")
    if isinstance(agent, dict):
        plain["agent_config"] = _shaped_agent(dict(agent), (*place, "agent_config"), problems)
    return plain, problems


def _shaped_agent(agent: dict[str, Plain], place: Place, problems: list[Problem]) -> dict[str, Plain]:
    executor = agent.pop("code_execution_config", None)
    if executor is not None and executor is not False:
        message = _DOCKER if "docker" in str(executor).lower() else _LOCAL
        problems.append(Problem((*place, "code_execution_config"), message))
    models = agent.get("llm_config")
    if isinstance(models, list):
        if len(models) == 1:
            agent["llm_config"] = models[0]
        else:
            problems.append(Problem((*place, "llm_config"), _FALLBACKS))
    return agent
