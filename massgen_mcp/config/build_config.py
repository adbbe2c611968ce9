"""`build_config`: a complete configuration as a dictionary, the way MassGen's quickstart writes it.

Must not load, check or run it; `run(config_dict=...)` does. What a caller got wrong is told here, though.
"""

import re
from collections.abc import Sequence
from typing import Any

from massgen_mcp.config.access.agent_types import find_type
from massgen_mcp.config.default_team import MAX_AGENTS
from massgen_mcp.config.given import Paths
from massgen_mcp.config.massgen.commands import SUDO_IMAGE
from massgen_mcp.config.providers.catalog import WITHOUT_PROVIDER, named_provider
from massgen_mcp.config.providers.model_names import detect_backend
from massgen_mcp.errors import MassgenError

DEFAULT_MODEL = "gpt-5"
DEFAULT_AGENTS = 2

SKILLS = ".agent/skills"

_OWN_ADDRESS = (*WITHOUT_PROVIDER, "openai", "claude", "gemini", "grok", "chatcompletion", "azure_openai")
"""Types whose address goes without saying, or which have none to fill in."""


def build_config(
    num_agents: int | None = None,
    backend: str | None = None,
    model: str | None = None,
    models: Sequence[str] | None = None,
    backends: Sequence[str] | None = None,
    use_docker: bool = False,
    context_paths: Paths | None = None,
) -> dict[str, Any]:
    """A configuration that `run(config_dict=...)` takes, and that may be changed or written to a YAML file before.

    Without arguments: two agents of gpt-5. `models` or `backends` give one agent each; `num_agents` (1 to 10) deals
    them out in turn. A model is a plain name whose provider is known (`gpt-5`, `claude-…`, `gemini-…`, `grok-…`) or
    `backend/model`; with `backend` or `backends` it is that provider's, whatever its name. A context path that is only
    text may be written to. With `use_docker` agents run commands in Docker, without which no run of it begins.

    Raises `MassgenError` config_invalid.
    """
    if num_agents is None:
        num_agents = max(len(models or ()), len(backends or ())) or DEFAULT_AGENTS
    team = _provider_models(
        num_agents, _one_or_many("model", model, models), _one_or_many("backend", backend, backends)
    )
    agents = [_agent_section(provider, name, place, use_docker) for place, (provider, name) in enumerate(team, start=1)]
    orchestrator: dict[str, Any] = {
        "snapshot_storage": "snapshots",
        "agent_temporary_workspace": "temp_workspaces",
        "max_new_answers_per_agent": 5,
        "coordination": {
            "max_orchestration_restarts": 2,
            "enable_agent_task_planning": True,
            "task_planning_filesystem_mode": True,
            "enable_memory_filesystem_mode": True,
            **({"use_skills": True, "skills_directory": SKILLS} if use_docker else {}),
        },
    }
    if context_paths:
        orchestrator["context_paths"] = path_entries(context_paths)
    return {
        "agents": agents,
        "orchestrator": orchestrator,
        "timeout_settings": {"orchestrator_timeout_seconds": 1800},
    }


def path_entries(paths: Paths) -> list[dict[str, Any]]:
    """Context paths as a config holds them; one that is only text may be written to."""
    if isinstance(paths, str):
        raise MassgenError("config_invalid", f"context_paths must be a list of paths; write [{paths[:200]!a}]")
    return [{"path": path, "permission": "write"} if isinstance(path, str) else dict(path) for path in paths]


def _one_or_many(name: str, one: str | None, many: Sequence[str] | None) -> list[str]:
    if isinstance(many, str):
        raise MassgenError("config_invalid", f"{name}s must be a list; write {name}={many[:200]!a} or {name}s=[...]")
    if one is not None and many:
        raise MassgenError("config_invalid", f"pass {name} or {name}s, not both")
    return [one] if one is not None else list(many or ())


def _provider_models(num_agents: int, models: list[str], backends: list[str]) -> list[tuple[str, str]]:
    """Provider and model of every agent."""
    named = max(len(models), len(backends))
    if not 1 <= num_agents <= MAX_AGENTS:
        raise MassgenError("config_invalid", f"a team needs 1 to {MAX_AGENTS} agents, not {num_agents}")
    if num_agents < named:
        raise MassgenError(
            "config_invalid", f"more models or backends ({named}) than agents ({num_agents}); name fewer"
        )
    if len(models) > 1 and len(backends) > 1 and len(models) != len(backends):
        raise MassgenError(
            "config_invalid",
            f"{len(models)} models and {len(backends)} backends don't match; name one of each per agent",
        )
    return [_choice(models, backends, place) for place in range(num_agents)]


def _choice(models: list[str], backends: list[str], place: int) -> tuple[str, str]:
    model = models[place % len(models)] if models else None
    backend = backends[place % len(backends)] if backends else None
    if backend is None:
        return detect_backend(model if model is not None else DEFAULT_MODEL)
    row = named_provider(backend)
    if model is None:
        strong = DEFAULT_MODEL if row.type == "openai" else row.strong_model
        if strong is None:
            raise MassgenError("config_invalid", f"backend {row.type}: also name a model")
        return row.type, strong
    prefix, slash, rest = model.partition("/")
    return row.type, rest if slash and prefix in (row.type, *row.aliases) else model


def _agent_section(provider: str, model: str, place: int, use_docker: bool) -> dict[str, Any]:
    asked = {"model": model}
    backend: dict[str, Any] = {"type": provider, **find_type(provider).name_backend(model, asked)}
    if provider not in _OWN_ADDRESS:
        backend["base_url"] = named_provider(provider).base_url
    backend["cwd"] = f"workspace{place}"
    if use_docker:
        backend["enable_code_based_tools"] = True
        backend["command_line_execution_mode"] = "docker"
        backend["command_line_docker_image"] = SUDO_IMAGE
    else:
        backend["exclude_file_operation_mcps"] = False
    return {"id": _agent_id(provider, model, place), "backend": backend}


def _agent_id(provider: str, model: str, place: int) -> str:
    """The model's last part with the place behind it (`groq-70b1`), or all of it if that part is only a number
    (`openai-gpt5-1`).
    """
    last = re.sub(r"[^A-Za-z0-9]", "", model.rpartition("/")[2].rpartition("-")[2])[:40]
    return f"{provider}-{last}{place}" if re.search("[A-Za-z]", last) else f"{provider}-{_short_name(model)}-{place}"


def _short_name(model: str) -> str:
    """The model's name after the last slash, without punctuation, as a part of an agent's id."""
    return re.sub(r"[^a-z0-9]", "", model.rpartition("/")[2].lower())[:40] or "model"
