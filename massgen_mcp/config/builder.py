"""Configs from a list of models."""

import re
from collections.abc import Sequence

from pydantic import TypeAdapter, ValidationError

from massgen_mcp.config.diagnostics import show_name
from massgen_mcp.config.models.agents import AgentSettings
from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.config.models.common import MAX_MODEL_NAME
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.config.providers.catalog import named_provider
from massgen_mcp.config.providers.model_names import detect_backend
from massgen_mcp.errors import MassgenError

_BACKEND: TypeAdapter[BackendConfig] = TypeAdapter(BackendConfig)

MAX_AGENTS = 10


def config_from_models(models: Sequence[str], *, num_agents: int | None, base_url: str | None = None) -> Config:
    """A team with one agent per model (`provider/model`, or a plain name such as `gpt-5`), and effort `auto`.

    With `num_agents` the models are dealt out in turn until there are that many agents. `base_url` is where all of them
    are asked, instead of at their providers'. Ids are `provider-model-place`. Raises `MassgenError("config_invalid")`.
    """
    if not models:
        raise MassgenError("config_invalid", "name at least one model, such as openai/MODEL")
    count = len(models) if num_agents is None else num_agents
    if not 1 <= count <= MAX_AGENTS:
        raise MassgenError("config_invalid", f"a team has 1 to {MAX_AGENTS} agents, not {count}")
    if count < len(models):
        raise MassgenError("config_invalid", f"{len(models)} models are too many for {count} agents; name fewer models")
    dealt = [detect_backend(models[place % len(models)]) for place in range(count)]
    return Config(
        agents=tuple(_agent(name, model, place, base_url) for place, (name, model) in enumerate(dealt, start=1)),
        orchestrator=OrchestratorConfig(effort="auto"),
    )


def backend_of(provider: str, model: str, *, base_url: str | None = None) -> BackendConfig:
    """The backend that asks `model` at `provider` (a name of the provider table, or `scripted`)."""
    if not 1 <= len(model) <= MAX_MODEL_NAME or not model.isprintable():
        message = f"a model's name has 1 to {MAX_MODEL_NAME} characters, and no line breaks or control characters"
        raise MassgenError("config_invalid", f"{show_name(model[:MAX_MODEL_NAME])}: {message}")
    asked: dict[str, str] = {"model": model} if base_url is None else {"model": model, "base_url": base_url}
    wrong = f"{provider} at {base_url!a}: not a usable address"
    match provider:
        case "scripted":
            data = {"type": provider, "model": model}
        case "claude_code":
            data = {"type": provider, "model": model}
            wrong = f"{show_name(model)}: a model of Claude Code begins with a letter or digit and has no spaces"
        case "ag2":
            data = {"type": provider, "agent_config": {"llm_config": asked}}
        case _:
            data = {"type": named_provider(provider).type, **asked}
    try:
        return _BACKEND.validate_python(data)
    except ValidationError as error:
        raise MassgenError("config_invalid", wrong) from error


def _agent(provider: str, model: str, place: int, base_url: str | None) -> AgentSettings:
    return AgentSettings(id=agent_id(provider, model, place), backend=backend_of(provider, model, base_url=base_url))


def agent_id(provider: str, model: str, place: int) -> str:
    """`openai-gpt5-1`: provider, the model's last part without punctuation, place in the team."""
    return f"{provider}-{short_name(model)}-{place}"


def short_name(model: str) -> str:
    """The model's name after the last slash, without punctuation, as a part of an agent's id."""
    return re.sub(r"[^a-z0-9]", "", model.rpartition("/")[2].lower())[:40] or "model"
