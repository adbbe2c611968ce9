"""The set-up dialogue of `massgen`: looks what is there, asks for a team, saves it as a config. It shows no key."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import yaml

from massgen_mcp.cli.asking import ask, choose, confirm, on_terminal
from massgen_mcp.cli.output import print_line
from massgen_mcp.config.access.local_servers import LocalServer, described, find_local_servers
from massgen_mcp.config.default_team import (
    chosen_models,
    config_from_models,
    default_team,
    team_of_clis,
    team_of_keys,
    team_of_server,
)
from massgen_mcp.config.examples import example_path, list_examples
from massgen_mcp.config.loader import EXAMPLE_PREFIX, config_places, is_config, load_config, missing_keys, parse_config
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.orchestrator import ContextPath
from massgen_mcp.config.own_clis import OwnCli, installed_clis
from massgen_mcp.config.providers.catalog import PROVIDERS, keys_of_default_teams
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import write_durably
from massgen_mcp.request.team import unused_config
from massgen_mcp.request.trust import read_file, remember

HEADER = "# Made by `massgen init`. massgen reads keys from the environment, never from a config.\n\n"


def begin(*, cwd: Path, environ: Mapping[str, str]) -> Path | None:
    """For somebody who has no config: offer the default team before any set-up. None: that one is to be asked."""
    try:
        team = anyio.run(default_team, environ)
    except MassgenError:
        return set_up(cwd=cwd, environ=environ)
    print_line("You have no config yet, and you don't need one.")
    asked = ", ".join(dict.fromkeys(agent.asked for agent in team.config.agents))
    offers = [f"Start now with the {team.description}", "Set up another team first (or later, with `massgen init`)"]
    print_line(f"Available models: {asked}")
    return set_up(cwd=cwd, environ=environ) if choose("Which", offers) else None


def set_up(*, cwd: Path, environ: Mapping[str, str]) -> Path:
    """Ask, save, and return where. Raises `MassgenError` where nobody can be asked; Ctrl-C leaves nothing behind."""
    if not on_terminal():
        raise MassgenError(
            "invalid_arguments",
            "`massgen init` needs a terminal; write a config by hand, or copy one from `massgen configs NAME`",
        )
    print_line("Set up a team for massgen. Press Ctrl-C to leave without saving.")
    if unused := unused_config(cwd, "command line"):
        print_line(unused)
    keys = dict.fromkeys(name for row in PROVIDERS for name in row.key_variables if environ.get(name, "").strip())
    servers = anyio.run(find_local_servers, environ)
    print_line(f"Keys in the environment: {', '.join(keys) or 'none'}")
    print_line(f"Model servers: {'; '.join(described(one) for one in servers) or 'none'}")
    clis = anyio.run(installed_clis, environ)
    print_line(f"Agent CLIs: {'; '.join(map(str, clis)) or 'none'}")
    models, ready = _strong_models(keys), [cli for cli in clis if cli.ready]
    if not (models or servers or ready):
        print_line(
            f"If one of {', '.join(keys_of_default_teams())} is set, or Ollama or another model server is running,"
        )
        print_line("you don't need to set anything up: press Ctrl-C, set a key or start a server, and ask again.")
    print_line()
    text = _team_text(models, servers, ready, environ)
    config = parse_config(text, "the new config", environ, base_dir=cwd)
    target = _file_to_save(cwd, environ)
    _save(target, text)
    saved = read_file(target, environ, cwd)
    remember(saved, saved.digest(), environ)
    print_line(f"Saved {target} with {len(config.agents)} agent{'' if len(config.agents) == 1 else 's'}.")
    if missing := missing_keys(config, environ):
        print_line(f"Set {', '.join(missing)} in the environment before you ask.")
    print_line('Ask with: massgen "your question"')
    print_line()
    return target


def _strong_models(keys: Container[str]) -> list[str]:
    """One of each provider whose key is there."""
    rows = [row for row in PROVIDERS if row.strong_model and any(name in keys for name in row.key_variables)]
    return [f"{row.type}/{row.strong_model}" for row in rows]


def _team_text(
    models: Sequence[str], servers: Sequence[LocalServer], clis: Sequence[OwnCli], environ: Mapping[str, str]
) -> str:
    """The text of the config that a person wants."""
    offers: list[tuple[str, Callable[[], str]]] = []
    if models:
        keyed = team_of_keys(environ)
        strongest = keyed.config if keyed else config_from_models(models, num_agents=None)
        offers.append((f"The strongest model for each key: {', '.join(models)}", partial(_config_text, strongest)))
    for one in servers:
        chosen = chosen_models(one) or one.models[:1]
        named = ", ".join(model.name for model in chosen)
        offers.append(
            (f"The model server {one.type}: {named}", partial(_config_text, team_of_server(one, chosen).config))
        )
    if clis:
        named = ", ".join(cli.name for cli in clis)
        title = f"Agent CLIs with your own logins, covered by your subscriptions: {named}"
        offers.append((title, partial(_config_text, team_of_clis(clis).config)))
    offers.append(("A ready-made config", partial(_ready, environ)))
    offers.append(("Your own team: answer three questions", partial(_three_questions, models)))
    print_line("Which team do you want?")
    _, make = offers[choose("Which", [title for title, _ in offers])]
    return make()


def _ready(environ: Mapping[str, str]) -> str:
    configs = ready_configs(environ)
    chosen = configs[choose("Which config", [str(config) for config in configs])]
    return example_path(chosen.source.removeprefix(EXAMPLE_PREFIX)).read_text(encoding="utf-8")


def _three_questions(models: Sequence[str]) -> str:
    suggested = ",".join(models)
    while True:
        print_line("1. Which models? Comma-separated, such as openai/gpt-5,claude-sonnet-4-5.")
        if suggested:
            print_line(f"   Press Enter for {suggested}")
        if not (named := ask("Models") or suggested):
            continue
        print_line("2. How many agents? massgen assigns the models to them in turn.")
        count = ask("Agents", str(max(2, len(named.split(",")))))
        try:
            config = config_from_models([name.strip() for name in named.split(",")], num_agents=int(count))
        except (MassgenError, ValueError) as error:
            print_line(f"That doesn't work: {error}")
            continue
        print_line("3. May the team read the files in your working directory?")
        readable = confirm("Read", default=False)
        return _config_text(_reading(config) if readable else config)


def _reading(config: Config) -> Config:
    orchestrator = config.orchestrator.model_copy(update={"context_paths": (ContextPath(path="."),)})
    return config.model_copy(update={"orchestrator": orchestrator})


def _config_text(config: Config) -> str:
    return HEADER + yaml.safe_dump(config.model_dump(mode="json", exclude_defaults=True), sort_keys=False)


def _file_to_save(cwd: Path, environ: Mapping[str, str]) -> Path:
    """Where to save; a file that is there is only replaced when the person says so."""
    project, own = config_places(cwd, environ)
    while True:
        titles = [f"For this directory: {project}", f"For all directories: {own}"]
        print_line("Where do you want to save the config?")
        target = (project, own)[choose("Which", titles)]
        if not target.exists():
            return target
        print_line(f"{target} exists.")
        if confirm("Replace it?", default=False):
            return target


def _save(target: Path, text: str) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_durably(target, text.encode())
    except OSError as error:
        raise MassgenError("config_invalid", f"cannot write {target}: {error.strerror}") from error


# ---------------------------------------------------------------------------------------------------------------------
# The configs that a person can choose from: the project's, the user's own, the packaged ones.


@dataclass(frozen=True, slots=True)
class ConfigChoice:
    source: str
    """What `--config` takes."""
    description: str
    needs: tuple[str, ...] | None
    """Variables that are not set. None: the config cannot be loaded as it is."""

    def __str__(self) -> str:
        missing = " [cannot be loaded]" if self.needs is None else f" [set {', '.join(self.needs)}]"
        return f"{self.source}: {self.description}{missing if self.needs != () else ''}"


def choose_config(*, cwd: Path, environ: Mapping[str, str]) -> str | None:
    """Ask which config to take; returns what `--config` takes. None: the one that is found in `cwd` anyway; who picks
    it from a list has not read what it asks for. Raises `MassgenError` where nobody can be asked."""
    if not on_terminal():
        raise MassgenError("invalid_arguments", "--select needs a terminal; name the config with --config PATH")
    own = [place for place in config_places(cwd, environ) if is_config(place)]
    choices = [_choice(str(path), "your own", environ) for path in own]
    choices += ready_configs(environ)
    print_line("Configs:")
    source = choices[choose("Which one", [str(choice) for choice in choices])].source
    return None if source == str(config_places(cwd, environ)[0]) else source


def ready_configs(environ: Mapping[str, str]) -> list[ConfigChoice]:
    """Those that can be used here come first."""
    choices = [_choice(f"{EXAMPLE_PREFIX}{one.name}", one.description, environ) for one in list_examples()]
    return sorted(choices, key=lambda choice: choice.needs != ())


def _choice(source: str, description: str, environ: Mapping[str, str]) -> ConfigChoice:
    try:
        needs = tuple(missing_keys(load_config(source, environ=environ), environ))
    except MassgenError:
        needs = None
    return ConfigChoice(source, description, needs)
