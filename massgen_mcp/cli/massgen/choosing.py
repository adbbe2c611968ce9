"""The configs that a person can choose from: the project's, the user's own, the packaged ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.cli.asking import choose, on_terminal
from massgen_mcp.cli.output import print_line
from massgen_mcp.config.examples import list_examples
from massgen_mcp.config.loader import EXAMPLE_PREFIX, config_places, is_config, load_config, missing_keys
from massgen_mcp.errors import MassgenError


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
        raise MassgenError("invalid_arguments", "--select needs a terminal; name the config with --config")
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
