"""Configs in the form of MassGen's users: each file of `massgen/` says in its first lines what must come of it.

- `# team:` the agents, `id type/model`, if it loads; `# has:` settings of the loaded config, by their path
- `# ignored:` the keys that its note lists; nothing without the line
- `# refused:` a feature that is refused, and the place where; `# also:` what else the same message names
- `# wrong:` another problem: its place, and the beginning of its message
"""

import re
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.config import loader
from massgen_mcp.config.massgen.features import FEATURES
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError

FILES = sorted((Path(__file__).parent / "massgen").glob("*.yaml"))
MESSAGES = {feature.name: feature.message for feature in FEATURES}


def expected(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if said := re.fullmatch(r"# (team|has|ignored|refused|also|wrong): (.+)", line):
            found.setdefault("problems" if said[1] in ("refused", "wrong") else said[1], []).append(
                f"{said[1]} {said[2]}" if said[1] in ("refused", "wrong") else said[2]
            )
    return found


def loaded(file: Path) -> loader.ParsedConfig:
    return loader.load_parsed(file, environ={}, base_dir=file.parent)


def setting(config: Config, path: str) -> str:
    value: Any = config.model_dump(mode="json")
    for key in path.split("."):
        value = value[int(key) if key.isdigit() else key]
    return str(value)


def same_number(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return one == other


LOADING = [file for file in FILES if "# team:" in file.read_text()]
REFUSED = [file for file in FILES if file not in LOADING]


def test_there_are_files_of_both_kinds_for_every_feature() -> None:
    assert len(FILES) >= 60
    assert len(LOADING) > 30
    told = " ".join(file.read_text() for file in REFUSED)
    assert [name for name in MESSAGES if f"# refused: {name} " not in told] == []


@pytest.mark.parametrize("file", LOADING, ids=lambda file: file.stem)
def test_a_file_that_has_a_meaning_here_loads_with_its_team_and_its_note(file: Path) -> None:
    parsed, says = loaded(file), expected(file.read_text())
    config = parsed.config
    team = "; ".join(f"{agent.id} {agent.backend.type}/{agent.backend.model}" for agent in config.agents)
    assert [team] == says["team"]
    for path, value in (entry.split(" ", 1) for entry in "; ".join(says.get("has", [])).split("; ") if entry):
        assert same_number(setting(config, path), value.replace("\\n", "\n")), path
    keys = re.sub(r" \([^)]*(\([^)]*\))?[^)]*\)", "", parsed.note or "").removeprefix("ignored: ")
    assert keys == "".join(says.get("ignored", []))


@pytest.mark.parametrize("file", REFUSED, ids=lambda file: file.stem)
def test_a_file_that_asks_for_more_is_refused_with_one_message_for_each_feature(file: Path) -> None:
    text = file.read_text()
    says = expected(text)
    with pytest.raises(MassgenError) as caught:
        loaded(file)
    assert caught.value.code == "config_invalid"
    found = str(caught.value).splitlines()
    assert len(found) == len(says["problems"]), found
    for line, problem in zip(found, says["problems"], strict=True):
        where, told = line.removeprefix(f"{file}:").split(": ", 1)
        kind, _, rest = problem.partition(" ")
        place = rest.split(": " if kind == "wrong" else " ")[0 if kind == "wrong" else 1]
        message = rest.partition(": ")[2] if kind == "wrong" else MESSAGES[rest.split()[0]]
        assert told.startswith(f"{place}: {message}")
        last_key = re.split(r"[.\[\]]+", place.rstrip("]"))[-1]
        assert last_key in text.splitlines()[int(where) - 1] or "a required key is missing" in message
    for also in says.get("also", []):
        assert all(place in str(caught.value).partition("(also ")[2] for place in also.split(", "))
