"""What a command line says about the team, and how its person consents. The rule that decides is in `request`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from massgen_mcp.cli.asking import confirm, on_terminal
from massgen_mcp.cli.massgen.options import AS_IT_IS, Options
from massgen_mcp.cli.output import print_line
from massgen_mcp.config.adjusted import rechecked
from massgen_mcp.config.loader import require_keys
from massgen_mcp.config.models import AUTO_MODEL, Config
from massgen_mcp.config.providers import WITHOUT_PROVIDER, named_provider
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.team import Named, Team, choose_team
from massgen_mcp.request.trust import Consent

MODELS_ALONE = MappingProxyType(
    {"scripted": "scripted", "claude_code": "default", **dict.fromkeys(("lmstudio", "vllm", "sglang"), AUTO_MODEL)}
)
"""What a backend that knows no strongest model asks when nobody names one."""


async def find_team(options: Options, *, cwd: Path, environ: Mapping[str, str]) -> Team:
    """A team whose keys are all there. Raises `MassgenError` as `choose_team`, and missing_key."""
    models = tuple(_models(options)) if options.models or options.backend else ()
    named = Named(config=options.config, models=models, num_agents=options.num_agents)
    ask = _consents if on_terminal() and not options.automation else None
    as_it_is = options.trust == AS_IT_IS
    consent = Consent(ask=ask, as_it_is=as_it_is, digest=None if as_it_is else options.trust, options=True)
    team = await choose_team(named, cwd=cwd, environ=environ, consent=consent)
    require_keys(team.config, team.environ)
    if options.system_message is None:
        return team
    return replace(team, config=_with_system_message(team.config, options.system_message))


def _consents(text: str) -> bool:
    for line in text.splitlines():
        print_line(line)
    print_line("Lines with ! are more than a config may ask unasked. A yes is remembered until the file changes.")
    return confirm("Allow this", default=False)


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


def _with_system_message(config: Config, text: str) -> Config:
    agents = tuple(agent.model_copy(update={"system_message": text}) for agent in config.agents)
    return rechecked(config.model_copy(update={"agents": agents}))
