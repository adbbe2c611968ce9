"""START HERE. Which team is asked, by one rule at every door: what was named, else the project's config, else the
user's own, else the default team.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from massgen_mcp.config.builder import config_from_models
from massgen_mcp.config.diagnostics import show_name
from massgen_mcp.config.loader import config_path, config_places, is_config, parse_data
from massgen_mcp.config.models.config import Config
from massgen_mcp.request.reach import reach_of
from massgen_mcp.request.trust import Consent, Origin, read_file, require_trust


@dataclass(frozen=True, slots=True)
class Named:
    """What a caller named; all empty: nothing."""

    config: str | None = None
    """A path, or `@examples/NAME`."""
    shown: str | None = None
    """The config's name in the caller's words."""
    by_agent: bool = False
    """An agent named it, not a person."""
    data: Mapping[str, Any] | None = None
    """A config that is a dictionary already."""
    models: tuple[str, ...] = ()
    num_agents: int | None = None
    base_url: str | None = None


@dataclass(frozen=True, slots=True)
class Team:
    """A config that may run, and where it came from."""

    config: Config
    source: str
    """In words, the same at every door."""
    environ: Mapping[str, str]
    """What to run it in: the caller's own, with the pairs that were accepted for this call alone."""
    path: Path | None = None
    """The file, if there is one."""
    is_default: bool = False
    note: str | None = None
    """What of the config was ignored, and why: one line."""


async def choose_team(named: Named, *, cwd: Path, environ: Mapping[str, str], consent: Consent) -> Team:
    """Raises `MassgenError`: config_not_found, config_invalid, config_untrusted, key_refused, no_default_team."""
    if named.models:
        config = config_from_models(named.models, num_agents=named.num_agents, base_url=named.base_url)
        return Team(config, f"models: {', '.join(named.models)}", environ)
    if named.data is not None:
        parsed = parse_data(named.data, "config_dict", environ=environ)
        return Team(parsed.config, "config_dict", environ, note=_noted("config_dict", parsed.note))
    project, own = config_places(cwd, environ)
    if named.config is not None:
        origin: Origin = "agent" if named.by_agent else "person"
        return _from_file(named.config, origin, named.shown or named.config, cwd, environ, consent)
    if is_config(project):
        return _from_file(str(project), "found", f"the project's config {project}", cwd, environ, consent)
    if is_config(own):
        return _from_file(str(own), "person", f"your own config {own}", cwd, environ, consent)
    from massgen_mcp.config.default_team import default_team  # here: a server starts without it

    team = await default_team(environ)
    return Team(team.config, team.told, environ, is_default=True)


def describe_start(config: Config, source: str, environ: Mapping[str, str], cwd: Path) -> str:
    """Before the first call of a model, on one line: which team, from where, and what it reaches."""
    return f"{source}; {reach_of(config, environ, cwd.resolve())}"


def _from_file(source: str, origin: Origin, told: str, cwd: Path, environ: Mapping[str, str], consent: Consent) -> Team:
    file = read_file(source, environ, cwd)
    allowed = require_trust(file, origin, environ, consent)
    path = config_path(source)
    return Team(file.config, told, allowed, path, note=_noted(path.name, file.note))


def _noted(name: str, note: str | None) -> str | None:
    return f"{show_name(name)}: {note}" if note else None
