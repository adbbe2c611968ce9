"""Several `AgentConfig`s as one team."""

from collections.abc import Mapping
from typing import Any, cast

from massgen_mcp.agents.config import AgentConfig
from massgen_mcp.errors import MassgenError


def team_config(
    *agents: AgentConfig, orchestrator: AgentConfig | None = None, environ: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The config of a team of these agents, as a dictionary: for `run(..., config_dict=...)`, or to write as YAML.

    An `AgentConfig` speaks of one agent and of the team that it works in. What concerns the team is taken from
    `orchestrator`, which adds no agent; without it all agents must agree. Only settings that differ from the engine's
    defaults are in the result. Raises `MassgenError("config_invalid")` for agents that disagree, for a key that is in
    no variable of the environment, and (`UnsupportedSettingError`) for settings that the engine does not have.
    """
    if not agents:
        raise MassgenError("config_invalid", "a team has at least one agent")
    alone = [agent.to_config_dict(environ) for agent in agents]
    sections = [section for config in alone for section in config.pop("agents")]
    if orchestrator is not None:
        alone = [orchestrator.to_config_dict(environ)]
        (lead,) = alone[0].pop("agents")
        if texts := lead.get("message_templates"):
            sections = [{"message_templates": texts, **section} for section in sections]
        if lead.get("enable_nlip"):
            sections = [{**section, "enable_nlip": True} for section in sections]
    rules, *others = alone
    for other in others:
        if differing := _differing(rules, other):
            message = f"the agents disagree in {', '.join(differing)}; name the one that decides with orchestrator="
            raise MassgenError("config_invalid", message)
    return {"agents": sections, **rules}


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names of the settings that differ, with their sections. One that is left out is not one of None."""
    mine, theirs = _flat(one), _flat(other)
    return sorted({name for name, _ in {*mine.items()} ^ {*theirs.items()}})


def _flat(settings: Mapping[str, Any], section: str = "") -> dict[str, str]:
    """Each setting under its whole name, as text."""
    flat: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            flat |= _flat(cast("Mapping[str, Any]", value), f"{section}{key}.")
        else:
            flat[f"{section}{key}"] = repr(value)
    return flat
