"""From the configs that Python callers fill in to the engine's own: a config dictionary, a frozen `Config`, a backend.

Whatever the engine cannot honour is refused here or by the config's parser, by name; nothing is dropped. A key never
enters a config: it is replaced by the name of the variable that holds it.
"""

import copy
import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Protocol, cast

from massgen_mcp.agents import given_keys, presets
from massgen_mcp.agents.settings import (
    CoordinationConfig,
    TimeoutConfig,
    UnsupportedSettingError,
    mapping,
    settings_from,
)
from massgen_mcp.agents.templates import MessageTemplates
from massgen_mcp.backends.base import Backend
from massgen_mcp.backends.registry import make_backend
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.massgen import claude_code_agents
from massgen_mcp.config.massgen.backends import SYSTEM_KEYS
from massgen_mcp.config.models import limits
from massgen_mcp.config.models.common import VARIABLE_PATTERN, Settings
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.config.providers.catalog import credential_variables
from massgen_mcp.config.providers.model_names import detect_backend
from massgen_mcp.errors import MassgenError

_SOURCE = "AgentConfig"


class Described(Protocol):
    """What is read here of an `AgentConfig`, which knows this module."""

    backend_params: dict[str, Any]
    message_templates: MessageTemplates | None
    voting_sensitivity: str
    max_new_answers_per_agent: int | None
    answer_novelty_requirement: str
    agent_id: str | None
    timeout_config: TimeoutConfig
    coordination_config: CoordinationConfig
    skip_coordination_rounds: bool
    debug_final_answer: str | None
    custom_instruction: str | None

    def init_nlip_router(self) -> None: ...


def team_config(
    *agents: Described, orchestrator: Described | None = None, environ: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The config of a team of these agents, as a dictionary: for `run(..., config_dict=...)`, or to write as YAML.

    An `AgentConfig` speaks of one agent and of the team that it works in. What concerns the team is taken from
    `orchestrator`, which adds no agent; without it all agents must agree. Only settings that differ from the engine's
    defaults are in the result. Raises `MassgenError("config_invalid")` for agents that disagree, for a key that is in
    no variable of the environment, and (`UnsupportedSettingError`) for settings that the engine does not have.
    """
    if not agents:
        raise MassgenError("config_invalid", "a team has at least one agent")
    for one in agents if orchestrator is None else (*agents, orchestrator):
        one.init_nlip_router()
    settings = [_team_settings(agent) for agent in ((orchestrator,) if orchestrator is not None else agents)]
    for other in settings[1:]:
        if differing := _differing(settings[0], other):
            message = f"the agents disagree in {', '.join(differing)}; name the one that decides with orchestrator="
            raise MassgenError("config_invalid", message)
    sections = [agent_section(agent, os.environ if environ is None else environ) for agent in agents]
    for agent, section in zip(agents, sections, strict=True):
        section.update(
            _templates(agent.message_templates or (orchestrator.message_templates if orchestrator else None))
        )
    return {"agents": sections, **{part: values for part, values in settings[0].items() if values}}


def frozen_config(agent: Described, environ: Mapping[str, str] | None = None) -> Config:
    """The validated config of this agent alone. Raises `MassgenError("config_invalid")` with all problems at once."""
    agent.init_nlip_router()
    section = agent_section(agent, os.environ if environ is None else environ) | _templates(agent.message_templates)
    data = {"agents": [section], **_team_settings(agent)}
    return config_from_data(
        data, _SOURCE, environ=given_keys.with_given_keys(os.environ) if environ is None else environ
    )


def backend_of(agent: Described, environ: Mapping[str, str] | None = None) -> Backend:
    """The backend that `backend_params` describe, ready to be asked. It is the caller's to close.

    A key that was given as text is used and stays in this process. Raises `MassgenError("config_invalid")`, and
    `BackendError` when a key is missing.
    """
    agent.init_nlip_router()
    environ = os.environ if environ is None else environ
    params = agent.backend_params
    if (key := params.get("api_key")) and isinstance(key, str):
        given_keys.name_of(key, _address_in(params))
    environ = given_keys.with_given_keys(environ)
    config = config_from_data({"agents": [agent_section(agent, environ)]}, _SOURCE, environ=environ)
    return make_backend(config.agents[0].backend, environ)


def instructions(agent: Described) -> str | None:
    """The agent's own instructions: its custom ones, then those among its backend parameters. None: there are none.

    Raises `MassgenError("config_invalid")` for one that is not text.
    """
    parts: dict[str, object] = {"custom_instruction": agent.custom_instruction}
    parts |= {key: agent.backend_params.get(key) for key in SYSTEM_KEYS}
    texts: list[str] = []
    for name, part in parts.items():
        if isinstance(part, str):
            texts.append(part)
        elif part is not None:
            raise MassgenError("config_invalid", f"{name}: expected text, not {type(part).__name__[:60]}")
    return "\n\n".join(filter(None, texts)) or None


def agent_section(agent: Described, environ: Mapping[str, str]) -> dict[str, Any]:
    """The agent's entry under `agents` of a config; its place in the team names it when it has no id."""
    section: dict[str, Any] = {} if agent.agent_id is None else {"id": agent.agent_id}
    section["backend"] = _backend(mapping(agent.backend_params, "backend_params"), environ)
    if system := instructions(agent):
        section["system_message"] = system
    return section


def _backend(params: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Backend parameters under the names of a config. A value of None means that the parameter is not set."""
    backend = {key: copy.deepcopy(value) for key, value in params.items() if value is not None}
    for key in SYSTEM_KEYS:
        backend.pop(key, None)
    if "type" not in backend and isinstance(backend.get("model"), str):
        backend["type"], backend["model"] = detect_backend(backend["model"])
    if backend.get("type") == presets.CLAUDE_CODE:
        backend, problems = claude_code_agents.translated(backend)
        for setting, message in problems.items():
            raise UnsupportedSettingError(setting, message)
    if isinstance(key := backend.get("api_key"), str) and not re.fullmatch(r"\$\{[A-Z_][A-Z0-9_]*\}", key):
        del backend["api_key"]
        backend["api_key_env"] = _variable_of(key, environ, _address_in(params))
    return backend


def _address_in(params: Mapping[str, Any]) -> str | None:
    address = params.get("endpoint") or params.get("base_url")
    return address if isinstance(address, str) else None


def _variable_of(key: str, environ: Mapping[str, str], address: str | None) -> str:
    """The name of a variable whose value is this key, the providers' own first. In the environment of this process any
    key has a name.
    """
    for name in (*credential_variables(), *sorted(environ)):
        if key and environ.get(name) == key and re.fullmatch(VARIABLE_PATTERN, name):
            return name
    if key and environ is os.environ:
        return given_keys.name_of(key, address)
    raise MassgenError(
        "config_invalid",
        "api_key: a config holds names of variables and never a key. Set the key in the environment and leave api_key "
        "out, or name the variable with api_key_env.",
    )


def _team_settings(agent: Described) -> dict[str, dict[str, Any]]:
    """What concerns the team, as sections of a config, without what is at the engine's default."""
    coordination = asdict(settings_from(CoordinationConfig, agent.coordination_config, "coordination_config"))
    timeouts = asdict(settings_from(TimeoutConfig, agent.timeout_config, "timeout_config"))
    orchestrator = {
        "voting_sensitivity": agent.voting_sensitivity,
        "max_new_answers_per_agent": agent.max_new_answers_per_agent,
        "answer_novelty_requirement": agent.answer_novelty_requirement,
        "skip_coordination_rounds": agent.skip_coordination_rounds,
        "debug_final_answer": agent.debug_final_answer,
    }
    engine = OrchestratorConfig()
    own = _not_default(orchestrator, engine)
    if changed := _not_default(coordination, engine.coordination):
        own["coordination"] = changed
    return {"orchestrator": own, "timeout_settings": _not_default(timeouts, limits.TimeoutSettings())}


def _templates(texts: MessageTemplates | None) -> dict[str, Any]:
    return {"message_templates": texts.overrides} if texts is not None and texts.overrides else {}


def _not_default(settings: Mapping[str, Any], engine: Settings) -> dict[str, Any]:
    default = engine.model_dump(mode="json")
    return {key: value for key, value in settings.items() if value != default[key]}


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names of the settings that differ, with their sections. One that is left out is not one of None."""
    mine, theirs = _flat(one), _flat(other)
    names = sorted(mine.keys() | theirs.keys())
    return [name for name in names if (name in mine) != (name in theirs) or mine.get(name) != theirs.get(name)]


def _flat(settings: Mapping[str, Any], section: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            flat |= _flat(cast("Mapping[str, Any]", value), f"{section}{key}.")
        else:
            flat[f"{section}{key}"] = value
    return flat
