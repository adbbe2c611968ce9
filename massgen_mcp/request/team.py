"""START HERE. Which team is asked, by one rule at every door: what was named, else the project's config, else the
user's own, else the default team.
"""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, assert_never

from massgen_mcp.config.adjusted import without_scripts
from massgen_mcp.config.default_team import config_from_models
from massgen_mcp.config.diagnostics import on_one_line, show_name
from massgen_mcp.config.loader import config_places, is_config, is_team, parse_data
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.harm import Granted
from massgen_mcp.request.reach import reach_of
from massgen_mcp.request.trust import ConfigFile, Consent, Origin, read_file, require_trust

NO_SCRIPTS = (
    "massgen won't run agent-written scripts, because you haven't allowed it: run "
    "`massgen validate --trust {path}`, or set `decide` in the call."
)
"""Of a config that goes on without them."""

Door = Literal["agent", "command line", "Python"]
"""Who reads what is said of a team: an agent that calls a tool, a person at a command line, an author of a program."""


@dataclass(frozen=True, slots=True)
class NamedTeam:
    """What a caller named; all empty: nothing."""

    config: str | None = None
    """A path, or `@examples/NAME`."""
    shown: str | None = None
    """The config's name in the caller's words."""
    by_agent: bool = False
    """An agent named it, not a person."""
    searches_directory: bool = True
    """Whether a config that lies in the working directory may be the team where none is named."""
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
    """What of the config was ignored, or which config was, and why: one line."""


async def choose_team(
    named: NamedTeam, *, cwd: Path, environ: Mapping[str, str], consent: Consent, granted: Granted | None = None
) -> Team:
    """Raises `MassgenError`: config_not_found, config_invalid, config_untrusted, key_refused, no_default_team."""
    if named.models:
        config = config_from_models(named.models, num_agents=named.num_agents, base_url=named.base_url)
        return Team(config, f"models: {', '.join(named.models)}", environ)
    if named.data is not None:
        parsed = parse_data(named.data, "config_dict", environ=environ)
        return Team(parsed.config, "config_dict", environ, note=_noted("config_dict", parsed.note))
    granted = granted or Granted()
    project, own = config_places(cwd, environ)
    if named.config is not None:
        origin: Origin = "agent" if named.by_agent else "person"
        file = read_file(named.config, environ, cwd)
        return _from_file(file, origin, named.shown or named.config, environ, consent, granted)
    if named.searches_directory and is_config(project):
        file = read_file(str(project), environ, cwd)
        return _from_file(file, "found", f"the project's config {project}", environ, consent, granted)
    unused = " ".join(filter(None, (_name_unread(cwd, project), unused_config(cwd, _door(named, consent))))) or None
    if is_team(own):
        file = read_file(str(own), environ, cwd)
        team = _from_file(file, "person", f"your own config {own}", environ, consent, granted)
        return replace(team, note=" ".join(filter(None, (team.note, unused))) or None)
    from massgen_mcp.config.default_team import default_team  # here: a server starts without it

    try:
        team = await default_team(environ)
    except MassgenError as error:
        raise MassgenError(error.code, " ".join(filter(None, (str(error), unused)))) from error
    return Team(team.config, team.description, environ, is_default=True, note=unused)


UNREAD = (".massgen/config.yml", ".massgen/config.json", "massgen.yaml", "massgen.yml", "config.yaml", "config.yml")
"""Files that people take for the config of a directory."""
_TEAM = re.compile(r"^(agents?\s*:|\s*[{,]?\s*\"agents?\"\s*:)", re.MULTILINE)
MOST_READ = 65_536


def _name_unread(cwd: Path, project: Path) -> str | None:
    """Name the files of the directory that look like a team but are not read, where there is no config."""
    found = [name for name in UNREAD if _is_like_team(cwd / name)]
    if not found:
        return None
    first = on_one_line(shlex.quote(found[0]))
    verb = "looks like a team config, but massgen isn't using it. To use it"
    if len(found) > 1:
        verb = "look like team configs, but massgen isn't using them. To use one"
    to = on_one_line(shlex.quote(os.path.relpath(project, cwd)))
    return f"{on_one_line(', '.join(found))} {verb}, pass `--config {first}`, or move it to {to}."


def _is_like_team(place: Path) -> bool:
    try:
        with place.open(encoding="utf-8", errors="replace") as file:
            return _TEAM.search(file.read(MOST_READ)) is not None
    except OSError:
        return False


def _door(named: NamedTeam, consent: Consent) -> Door:
    if named.by_agent:
        return "agent"
    return "command line" if consent.options else "Python"


def unused_config(cwd: Path, door: Door) -> str | None:
    """Which config of the repository around `cwd` is not taken, why, and how to take it at this door, in one sentence.
    None: there is none.
    """
    here = cwd.absolute()
    found: Path | None = None
    for directory in (here, *here.parents):
        place = config_places(directory, {})[0]
        found = place if found is None and directory != here and is_config(place) else found
        if os.path.lexists(directory / ".git"):
            break
    else:
        return None  # no repository
    if found is None:
        return None
    project = on_one_line(shlex.quote(os.path.relpath(found.parent.parent, here)))
    named = on_one_line(shlex.quote(os.path.relpath(found, here)))
    match door:
        case "agent":
            way = f"pass `team: {on_one_line(found)}`"
        case "command line":
            way = f"pass `--config {named}`, or run `cd {project}`"
        case "Python":
            way = (
                f"pass {on_one_line(found)} as `config`; with LiteLLM, use the model "
                f"`massgen/path:{on_one_line(found)}`"
            )
        case _:
            assert_never(door)
    return (
        f"massgen looks only in the working directory, so it doesn't use {on_one_line(found)}. To use this file: {way}."
    )


def describe_start(config: Config, source: str, environ: Mapping[str, str], cwd: Path) -> str:
    """Before the first call of a model, on one line: which team, from where, and what it reaches."""
    return f"{source}; {reach_of(config, environ, cwd.resolve())}"


def _from_file(
    file: ConfigFile,
    origin: Origin,
    description: str,
    environ: Mapping[str, str],
    consent: Consent,
    granted: Granted,
) -> Team:
    trusted = require_trust(file, origin, environ, consent, granted)
    config = without_scripts(file.config) if trusted.without else file.config
    notes = [file.note] if file.note else []
    if trusted.without and (config.orchestrator.context_paths or granted.readable):
        notes.append(NO_SCRIPTS.format(path=on_one_line(shlex.quote(str(file.path)))))
    return Team(config, description, trusted.environ, file.named, note=_noted(file.named.name, " ".join(notes)))


def _noted(name: str, note: str | None) -> str | None:
    return f"{show_name(name)}: {note}" if note else None
