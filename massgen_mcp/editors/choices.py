"""What a session can be set to: which team is asked, and whether it may change files."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from massgen_mcp.config.access.acceptances import user_directory
from massgen_mcp.config.examples import list_examples
from massgen_mcp.config.loader import load_config, missing_parts
from massgen_mcp.errors import MassgenError

DEFAULT, CODE, ASK = "default", "code", "ask"


@dataclass(frozen=True, slots=True)
class Choice:
    id: str
    name: str
    description: str

    def shown(self, id_: str) -> dict[str, Any]:
        return {id_: self.id, "name": self.name, "description": self.description}


MODES: Sequence[Choice] = (
    Choice(CODE, "Code", "The team works on copies of the project. massgen asks before it applies anything."),
    Choice(ASK, "Ask", "The team reads the project without changing it."),
)


def teams(environ: Mapping[str, str]) -> list[Choice]:
    """Return what can be asked now: the user's own and the packaged ones of which nothing is missing. Blocks."""
    what = "The project's config, your own config, or the models whose keys are set."
    return [Choice(DEFAULT, "Default team", what), *_own(environ), *_packaged(environ)]


def _own(environ: Mapping[str, str]) -> Iterator[Choice]:
    for path in sorted(user_directory(environ).glob("*.yaml")):
        with suppress(MassgenError):  # not a config, or not a whole one
            config = load_config(path, environ=environ)
            if path.stem != "config" and not missing_parts(config, environ):
                yield Choice(str(path), path.stem, ", ".join(agent.asked for agent in config.agents))


def _packaged(environ: Mapping[str, str]) -> Iterator[Choice]:
    for example in list_examples():
        if "/" not in example.name and not missing_parts(load_config(example.path, environ=environ), environ):
            yield Choice(f"@examples/{example.name}", example.name, example.description)


def as_options(team: str, teams: Sequence[Choice], mode: str) -> dict[str, Any]:
    """Return the options as a session tells them; clients that know no options have the modes."""
    chosen = {"type": "select", "id": "team", "name": "Team", "category": "model", "currentValue": team}
    may = {"type": "select", "id": "mode", "name": "Mode", "category": "mode", "currentValue": mode}
    return {
        "configOptions": [
            {**chosen, "options": [one.shown("value") for one in teams]},
            {**may, "options": [one.shown("value") for one in MODES]},
        ],
        "modes": {"currentModeId": mode, "availableModes": [one.shown("id") for one in MODES]},
    }
