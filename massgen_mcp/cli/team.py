"""Which team a command line means: named models, a named config, or the one that lies where configs are looked for.

Must not know how a team is asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from massgen_mcp.cli.options import Options
from massgen_mcp.config.adjusted import rechecked
from massgen_mcp.config.builder import config_from_models
from massgen_mcp.config.examples import example_path
from massgen_mcp.config.loader import EXAMPLE_PREFIX, find_config, load_config, require_keys
from massgen_mcp.config.models import AUTO_MODEL, Config
from massgen_mcp.config.providers import WITHOUT_PROVIDER, named_provider
from massgen_mcp.errors import MassgenError

MODELS_ALONE = MappingProxyType(
    {"scripted": "scripted", "claude_code": "default", **dict.fromkeys(("lmstudio", "vllm", "sglang"), AUTO_MODEL)}
)
"""What a backend that knows no strongest model asks when nobody names one."""


@dataclass(frozen=True, slots=True)
class Team:
    """A config whose keys are all there, and where it came from."""

    config: Config
    source: str
    """In the user's words: a path, `@examples/NAME`, or the models."""
    path: Path | None
    """The file, if there is one."""


def find_team(options: Options, *, cwd: Path, environ: Mapping[str, str]) -> Team:
    """Raises `MassgenError`: config_not_found, config_invalid, missing_key."""
    if options.models or options.backend:
        models = _models(options)
        config = config_from_models(models, num_agents=options.num_agents)
        team = Team(config, f"models: {', '.join(models)}", None)
    else:
        source = find_config(options.config, cwd=cwd, environ=environ)
        team = Team(load_config(source, environ=environ), source, _path(source))
    require_keys(team.config, environ)
    if options.system_message is None:
        return team
    return Team(_with_system_message(team.config, options.system_message), team.source, team.path)


def _models(options: Options) -> list[str]:
    """`backend/model` for each agent or each model to be dealt out."""
    if options.backend is None:
        return list(options.models)
    if options.models:
        return [f"{options.backend}/{model}" for model in options.models]
    if options.backend in MODELS_ALONE:
        return [f"{options.backend}/{MODELS_ALONE[options.backend]}"]
    row = None if options.backend in WITHOUT_PROVIDER else named_provider(options.backend)
    if row is None or row.strong_model is None:
        name = options.backend if row is None else row.type
        raise MassgenError("config_invalid", f"--backend {name}: name the model as well, with --model")
    return [f"{row.type}/{row.strong_model}"]


def _path(source: str) -> Path:
    name = source.removeprefix(EXAMPLE_PREFIX)
    return Path(source).absolute() if name == source else example_path(name)


def _with_system_message(config: Config, text: str) -> Config:
    agents = tuple(agent.model_copy(update={"system_message": text}) for agent in config.agents)
    return rechecked(config.model_copy(update={"agents": agents}))
