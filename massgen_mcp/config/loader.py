"""From a path, a text or a dictionary to a `Config`: the one edge where configs are parsed.

Every problem of a file is reported at once, with its line and without values.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from massgen_mcp.config import examples
from massgen_mcp.config.access import members
from massgen_mcp.config.access.acceptances import Pair, user_directory
from massgen_mcp.config.access.key_hosts import describe_refusal
from massgen_mcp.config.diagnostics import Problem, likely_types, problems_of, show_name, show_place
from massgen_mcp.config.models.config import AgentSettings, Config
from massgen_mcp.config.normalize import Shaped, shape
from massgen_mcp.config.to_plain import NotPlainError, plain_data
from massgen_mcp.config.yaml_reader import MAX_BYTES, Located, Place, Plain, read_yaml
from massgen_mcp.errors import MassgenError
from massgen_mcp.name_lists import join_names
from massgen_mcp.nearest import nearest

EXAMPLE_PREFIX = "@examples/"
_SUFFIXES = (".yaml", ".yml", ".json")
MAX_PROBLEMS = 100
_SHARED_KEYS = ("verbosity", "max_thinking_tokens")
"""Keys of a backend that MassGen's files have, too, and mean otherwise: it is read as theirs."""


@dataclass(frozen=True, slots=True)
class ParsedConfig:
    """A config, and what of its text was ignored and why: one line, None if nothing was."""

    config: Config
    note: str | None


_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


def load_config(source: str | Path, *, environ: Mapping[str, str], base_dir: Path | None = None) -> Config:
    """Load the config at a path, or the packaged one that `@examples/NAME` names.

    `base_dir` is what relative context paths in it start from (default: the current directory). Raises
    `MassgenError`: `config_not_found`, or `config_invalid` with all problems, one per line.
    """
    return load_parsed(source, environ=environ, base_dir=base_dir).config


def load_parsed(source: str | Path, *, environ: Mapping[str, str], base_dir: Path | None = None) -> ParsedConfig:
    """`load_config` with what of the file was ignored."""
    return parse_text(read_config(source), str(source), environ, base_dir=base_dir)


def parse_config(
    text: str | bytes, source_name: str, environ: Mapping[str, str], *, base_dir: Path | None = None
) -> Config:
    """Parse a config's YAML or JSON; `source_name` stands for it in messages. Raises as `load_config` does."""
    return parse_text(text, source_name, environ, base_dir=base_dir).config


def parse_text(
    text: str | bytes, source_name: str, environ: Mapping[str, str], *, base_dir: Path | None = None
) -> ParsedConfig:
    """`parse_config` with what of the text was ignored."""
    return _parsed_config(read_yaml(text, source_name), environ, base_dir)


def config_from_data(
    data: Mapping[str, object],
    source_name: str,
    *,
    environ: Mapping[str, str] = _NO_VARIABLES,
    base_dir: Path | None = None,
) -> Config:
    """Parse a config that is a dictionary already. Raises `MassgenError("config_invalid")` with all problems."""
    return parse_data(data, source_name, environ=environ, base_dir=base_dir).config


def parse_data(
    data: Mapping[str, object],
    source_name: str,
    *,
    environ: Mapping[str, str] = _NO_VARIABLES,
    base_dir: Path | None = None,
) -> ParsedConfig:
    """`config_from_data` with what of the dictionary was ignored."""
    located = Located(None, {}, source_name)
    try:
        plain = plain_data(data)
    except NotPlainError as error:
        raise _invalid([error.problem], located) from None
    return _parsed_config(replace(located, data=plain), environ, base_dir)


def config_places(cwd: Path, environ: Mapping[str, str]) -> tuple[Path, Path]:
    """Where a config is looked for when none is named: the project's, then the user's own. Parents are not searched."""
    return cwd / ".massgen" / "config.yaml", user_directory(environ) / "config.yaml"


def config_path(source: str | Path) -> Path:
    """The file that a path or `@examples/NAME` names; where no file is, `NAME` or `FOLDER/NAME.yaml` may be an example.

    Raises `MassgenError("config_not_found")` for no such example.
    """
    name, path = str(source), Path(source).absolute()
    example = name.removeprefix(EXAMPLE_PREFIX)
    if example != name:
        return examples.example_path(example)
    return path if is_config(path) else examples.example_of(name) or path


def read_config(source: str | Path) -> bytes:
    """The text of a config, as `parse_config` takes it. Raises `MassgenError("config_not_found")`."""
    return read_config_at(config_path(source), source)


def read_config_at(path: Path, source: str | Path) -> bytes:
    """`read_config` of the file that `config_path` has found for `source`, whatever that would find by now."""
    try:
        if not path.is_file():
            what = "Config file not found"
            if path.exists():
                what = "A config is a YAML file, not a directory" if path.is_dir() else "Not a regular file"
            near, example = _nearest_file(Path(source)), examples.nearest_example(str(source))
            known = near or (example and f"{EXAMPLE_PREFIX}{example}")
            hint = f"Did you mean {known}?" if known else f"Name a YAML file or {EXAMPLE_PREFIX}NAME."
            raise MassgenError("config_not_found", f"{what}: {show_name(str(source))}. {hint}")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise MassgenError("config_not_found", f"Cannot read the config {show_name(str(source))}: {reason}") from error


def is_config(place: Path) -> bool:
    """Whether a config lies there, for all that can be seen."""
    try:
        return place.is_file()
    except OSError:  # too long, or in somebody's private directory
        return False


def _nearest_file(path: Path) -> Path | None:
    """A config with nearly this name, of the same directory; in a directory of this name its only one."""
    if path.is_dir():
        inside = [one for one in path.iterdir() if one.suffix in _SUFFIXES]
        return inside[0] if len(inside) == 1 else None
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    known = {one.stem: one for one in beside if one.suffix in _SUFFIXES}
    return known.get(nearest(path.stem, known) or "")


def is_team(place: Path) -> bool:
    """Whether a config lies there that names a team, or tries to: one of `notify` alone is none."""
    try:
        return is_config(place) and _only_notice(read_yaml(read_config(place), str(place))) is None
    except MassgenError:
        return True  # whoever takes it is told what is wrong


def load_notify(own: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The program that the user's own config names, with a team or without. Raises `MassgenError("config_invalid")`."""
    if not is_config(own):
        return ()
    located = read_yaml(read_config(own), str(own))
    if (notice := _only_notice(located)) is not None:
        anybody: Plain = {"backend": {"type": "scripted"}}
        located = replace(located, data={"agent": anybody, "notify": notice[0]})
    return _parsed_config(located, environ, None).config.notify


def missing_keys(config: Config, environ: Mapping[str, str]) -> list[str]:
    """Names of the variables, keys above all, that this config needs and that are not set."""
    return list(dict.fromkeys(variables[0] for _, variables in _without_key(config, environ)))


def missing_parts(config: Config, environ: Mapping[str, str]) -> list[str]:
    """What this config needs and has not: the names of variables, and what is not installed, in words."""
    lacks = [*(members.lack(agent.backend, environ) for agent in config.agents), _without_nlip(config)]
    return [*missing_keys(config, environ), *dict.fromkeys(lack for lack in lacks if lack is not None)]


def _without_nlip(config: Config) -> str | None:
    if any(map(config.with_nlip, config.agents)) and find_spec("nlip_sdk") is None:
        return 'enable_nlip needs another package: pip install "massgen-mcp[nlip]"'
    return None


def check_credentials(config: Config, environ: Mapping[str, str]) -> None:
    """Raises `MassgenError("config_invalid")` naming the variable of a key that cannot be one (see `read_key`), or
    of an address with credentials in it.
    """
    for agent in config.agents:
        members.check_credentials(agent.backend, environ)


def refused_keys(config: Config, environ: Mapping[str, str]) -> tuple[Pair, ...]:
    """The keys that this config wants to send to hosts that may not have them."""
    return members.refused_keys((agent.backend for agent in config.agents), environ)


def require_keys(config: Config, environ: Mapping[str, str]) -> None:
    """Raises `MassgenError("key_refused")` for keys that may not go where the config wants them,
    `MassgenError("missing_key")` naming every agent that lacks its key and what may hold it, and
    `MassgenError("config_invalid")` as `check_credentials` does, or when an agent needs something that is not
    installed.
    """
    check_credentials(config, environ)
    if refused := refused_keys(config, environ):
        raise MassgenError("key_refused", describe_refusal(refused))
    for missing in (*(members.lack(agent.backend, environ) for agent in config.agents), _without_nlip(config)):
        if missing:
            raise MassgenError("config_invalid", missing)
    without = _without_key(config, environ)
    lacking: dict[str, list[str]] = {}
    for agent, names in without:
        lacking.setdefault(f"{join_names(names, 'or')}{members.describe_alternative(agent.backend)}", []).append(
            f"'{agent.id}'"
        )
    if lacking:
        listed = [
            f"agent {ids[0]} needs {key}" if len(ids) == 1 else f"agents {', '.join(ids)} need {key}"
            for key, ids in lacking.items()
        ]
        message = f"{'; '.join(listed)}. Set the key in the environment, or leave the agent out of the team."
        raise MassgenError("missing_key", message)


def _without_key(config: Config, environ: Mapping[str, str]) -> list[tuple[AgentSettings, Sequence[str]]]:
    return [(agent, names) for agent in config.agents for names in members.missing(agent.backend, environ)]


def _parsed_config(located: Located, environ: Mapping[str, str], base_dir: Path | None) -> ParsedConfig:
    """Read a config in our spelling. One that has problems, or keys that MassGen means otherwise, is read as MassGen's:
    its converter leaves what is ours as it is.
    """
    place = base_dir or Path.cwd()
    ours = shape(located.data, environ=environ, base_dir=place)
    if (config := _validate_native(ours)) is not None:
        return _accept_config(config, ours, located, environ)
    from massgen_mcp.config.massgen import files as massgen_files  # here: a config of ours goes without

    shaped = shape(located.data, environ=environ, base_dir=place, convert=massgen_files.take)
    if not shaped.data and shaped.problems:
        raise _invalid(shaped.problems, located)
    problems = shaped.problems
    try:
        config = Config.model_validate_json(json.dumps(shaped.data), strict=True)
    except ValidationError as error:
        faults = [*problems_of(error), *_problems_of_likely_types(shaped.data, error)]
        found = [Problem(shaped.as_written(problem.place), problem.message) for problem in faults]
        known = {problem.place for problem in problems}
        same_ids = any(place[-1:] == ("id",) for place in known)
        problems += [one for one in found if one.place not in known and not (same_ids and one.place == ("agents",))]
        raise _invalid(problems, located) from None
    if problems:
        raise _invalid(problems, located)
    return _accept_config(config, shaped, located, environ)


def _validate_native(shaped: Shaped) -> Config | None:
    """Return the config; None where it has a problem, or a key with another meaning in MassGen's files."""
    if shaped.problems:
        return None
    try:
        config = Config.model_validate_json(json.dumps(shaped.data), strict=True)
    except ValidationError:
        return None
    shared = (getattr(agent.backend, key, None) for agent in config.agents for key in _SHARED_KEYS)
    return None if any(value is not None for value in shared) else config


def _accept_config(config: Config, shaped: Shaped, located: Located, environ: Mapping[str, str]) -> ParsedConfig:
    """Return a valid config, unless an adapter or the place of the file speaks against it."""
    if faults := list(members.list_faults(config)):
        raise _invalid([Problem(shaped.as_written(place), fault) for place, fault in faults], located)
    own = config_places(Path(), environ)[1]
    if Path(located.source).absolute() != own and (unconfined := list(_unconfined(config))):
        message = f"this setting starts a program outside the sandbox, so only your own config ({own}) may set it"
        raise _invalid([Problem(place, message) for place in unconfined], located)
    return ParsedConfig(config, shaped.note)


def _unconfined(config: Config) -> Iterator[Place]:
    """Where it says that a program is to run with all of the user's rights."""
    if config.notify:
        yield ("notify",)
    for number, agent in enumerate(config.agents):
        if agent.backend.outside:
            yield ("agents", number, "backend", agent.backend.outside)


def _only_notice(located: Located) -> tuple[Plain] | None:
    """What `notify` is, where the config has nothing else."""
    data = located.data
    return (data["notify"],) if isinstance(data, dict) and data.keys() == {"notify"} else None


def _problems_of_likely_types(data: Mapping[str, Plain], error: ValidationError) -> list[Problem]:
    """What else is wrong in parts whose `type` is unknown, if it was meant to be the nearest one."""
    likely = likely_types(error)
    guess: Plain = dict(data)
    for place, backend_type in likely.items():
        guess = _with_type(guess, place, backend_type)
    try:
        Config.model_validate_json(json.dumps(guess), strict=True)
    except ValidationError as second:
        return [one for one in problems_of(second) if any(one.place[: len(place)] == place for place in likely)]
    return []


def _with_type(value: Plain, place: Place, name: str) -> Plain:
    """`value` with the mapping at `place` being of another `type`."""
    if isinstance(value, dict):
        if not place:
            return {**value, "type": name}
        return {key: _with_type(item, place[1:], name) if key == place[0] else item for key, item in value.items()}
    if isinstance(value, list) and place:
        return [_with_type(item, place[1:], name) if at == place[0] else item for at, item in enumerate(value)]
    return value


def _invalid(problems: Sequence[Problem], located: Located) -> MassgenError:
    """One error that lists all problems, in the order of the file."""
    lines = [(located.line_of(problem.place) or 0, problem) for problem in problems]
    lines.sort(key=lambda pair: pair[0])
    listed = [
        f"{located.source}{f':{line}' if line else ''}: {show_place(problem.place)}: {problem.message}"
        for line, problem in lines[:MAX_PROBLEMS]
    ]
    if len(lines) > MAX_PROBLEMS:
        listed.append(f"and {len(lines) - MAX_PROBLEMS} more")
    return MassgenError("config_invalid", "\n".join(listed))
