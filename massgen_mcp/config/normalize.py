"""The spellings a config may have beside the canonical one, brought to it: `agent:`, default ids, `api_key: ${NAME}`.

MassGen's files also name directories for workspaces and snapshots. Here every run has a tree of its own in which each
agent has its workspace, so such names are checked and have no further meaning.

Must not know `Config`'s fields beyond those it rewrites; whatever it does not understand is left for the models to
refuse.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from massgen_mcp.config import ag2_agents, custom_tools, mcp_servers
from massgen_mcp.config.adapters import list_adapters
from massgen_mcp.config.diagnostics import Problem, show_name, show_place
from massgen_mcp.config.models.backends import CONFIGURED_TYPES
from massgen_mcp.config.models.commands import REMOVED, REMOVED_LEVEL
from massgen_mcp.config.models.orchestrator import DEFAULT_SKILLS
from massgen_mcp.config.providers.catalog import PROVIDERS
from massgen_mcp.config.yaml_reader import Place, Plain
from massgen_mcp.nearest import nearest

if TYPE_CHECKING:
    from massgen_mcp.config.massgen.files import Taken  # a config of ours goes without

_VARIABLE = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)\}")
STORAGE_KEYS = ("snapshot_storage", "agent_temporary_workspace")
OF_THE_AGENT = (
    *("commands", "custom_tools", "exclude_file_operation_mcps"),
    *("mcp_servers", "allowed_tools", "exclude_tools"),
)
"""What stands under `backend` in a file, and is no matter of the backend."""
OF_CLAUDE_CODE = ("allowed_tools",)
"""What the Claude Code CLI has a meaning of its own for."""
MAX_PLACE = 4096
_OWN_TYPES = {*CONFIGURED_TYPES, *(alias for row in PROVIDERS for alias in row.aliases)}
_ALIASES = {alias: row.type for row in PROVIDERS for alias in row.aliases}


@dataclass(slots=True)
class Shaped:
    """Data in the canonical form, and what was wrong on the way. Problems name places as the user wrote them."""

    data: dict[str, Plain]
    problems: list[Problem] = field(default_factory=list[Problem])
    single: bool = False
    """The user wrote `agent:`; then `agents[0]` is `agent` to them."""
    moved: dict[Place, Place] = field(default_factory=dict[Place, Place])
    """Where the user wrote what has another name in `data`."""
    note: str | None = None
    """What was ignored, and why."""
    base_dir: Path = field(default_factory=Path)
    worked_on: list[str] = field(default_factory=list[str])
    """Directories that agents are to work on."""

    def as_written(self, place: Place) -> Place:
        for ours, written in self.moved.items():
            if place[: len(ours)] == ours:
                place = (*written, *place[len(ours) :])
                break
        return ("agent", *place[2:]) if self.single and place[:2] == ("agents", 0) else place


def shape(
    data: Plain,
    *,
    environ: Mapping[str, str],
    base_dir: Path,
    convert: Callable[[Mapping[str, Plain]], "Taken"] | None = None,
) -> Shaped:
    """Bring plain data to the form of the models; the input is left as it is. `convert`: from another spelling.

    Relative context paths and the skills' directory are taken from `base_dir`, `~/` from `environ["HOME"]`, and must
    exist.
    """
    if not isinstance(data, dict):
        return Shaped(
            {}, [Problem((), "expected a mapping with the key `agents`; create a config with `massgen init`")]
        )
    shaped = Shaped(dict(data), base_dir=base_dir)
    _unite_agents(shaped)
    _take_adapters(shaped)
    if convert is not None:
        _add_converted(shaped, convert(shaped.data))
    _shape_agents(shaped, environ)
    _take_switches(shaped)
    _find_archives(shaped, environ, base_dir)
    _replace_removed_level(shaped)
    if isinstance(orchestrator := shaped.data.get("orchestrator"), dict):
        shaped.data["orchestrator"] = plain = _without_storage(orchestrator, shaped)
        if isinstance(entries := plain.get("context_paths"), list):
            plain["context_paths"] = _context_paths(entries, shaped, environ, base_dir)
        if isinstance(coordination := plain.get("coordination"), dict):
            plain["coordination"] = _with_skills(coordination, shaped, environ, base_dir)
    _show_worked_on(shaped)
    return shaped


def _unite_agents(shaped: Shaped) -> None:
    data = shaped.data
    if "agent" in data:
        agent = data.pop("agent")
        if "agents" in data:
            shaped.problems.append(Problem(("agent",), "write 'agent' or 'agents', not both"))
        elif isinstance(agent, list):
            shaped.problems.append(Problem(("agent",), "this is a list; did you mean `agents`?"))
            data["agents"] = agent
        else:
            shaped.single = True
            data["agents"] = [agent]


def _take_adapters(shaped: Shaped) -> None:
    """`type: NAME` of an installed adapter. Our own types go before others of the same name."""
    if not isinstance(given := shaped.data.get("agents"), list):
        return
    shaped.data["agents"] = agents = [*given]
    for number, agent in enumerate(agents):
        if not isinstance(agent, dict) or not isinstance(backend := agent.get("backend"), dict):
            continue
        name = backend.get("type")
        if isinstance(name, str) and name not in _OWN_TYPES and name in list_adapters():
            of_all = {key: value for key, value in backend.items() if key in (*OF_THE_AGENT, "price")}
            settings = {key: value for key, value in backend.items() if key not in ("type", *of_all)}
            shaped_backend = {"type": "installed", "adapter": name, "settings": settings, **of_all}
            agents[number] = {**agent, "backend": shaped_backend}


def _add_converted(shaped: Shaped, converted: "Taken") -> None:
    shaped.data, shaped.moved = converted.data, converted.moved
    shaped.problems += converted.list_refusals(shaped.as_written)
    shaped.problems += [Problem(shaped.as_written(problem.place), problem.message) for problem in converted.problems]
    shaped.note = converted.note(shaped.as_written)


def _shape_agents(shaped: Shaped, environ: Mapping[str, str]) -> None:
    data = shaped.data
    agents = data.get("agents")
    if not isinstance(agents, list):
        return
    data["agents"] = [_shaped_agent(agent, number, shaped, environ) for number, agent in enumerate(agents)]
    _check_distinct(data["agents"], shaped)


def _shaped_agent(agent: Plain, number: int, shaped: Shaped, environ: Mapping[str, str]) -> Plain:
    if not isinstance(agent, dict):
        return agent
    named: dict[str, Plain] = {"id": f"agent{number + 1}", **agent}
    if isinstance(backend := named.get("backend"), dict):
        place = shaped.as_written(("agents", number, "backend"))
        named["backend"] = _shaped_backend(_without_places(backend, place, shaped, environ), place, shaped)
        for key in OF_THE_AGENT:
            own = backend.get("type") == "claude_code" and key in OF_CLAUDE_CODE
            if key in named["backend"] and not own:
                under = named["backend"].pop(key)
                if key == "commands" and under is True and key in named:
                    continue  # what the agent says of its commands says more
                if key in named:
                    shaped.problems.append(Problem((*place, key), "set twice for this agent; keep only one"))
                named[key] = under
                shaped.moved[("agents", number, key)] = ("agents", number, "backend", key)
        if "custom_tools" in named:
            find = partial(_existing, environ=environ, base_dir=shaped.base_dir)
            named["custom_tools"] = custom_tools.shape(
                named["custom_tools"], (*place, "custom_tools"), find, shaped.problems
            )
        if "mcp_servers" in named:
            named["mcp_servers"] = mcp_servers.shape(named["mcp_servers"], (*place, "mcp_servers"), shaped.problems)
    return named


def _without_places(
    backend: dict[str, Plain], place: Place, shaped: Shaped, environ: Mapping[str, str]
) -> dict[str, Plain]:
    """The backend without `cwd`. A directory of yours that Claude Code is to work on becomes a context path."""
    plain = dict(backend)
    if "cwd" not in plain or _is_place_within(cwd := plain.pop("cwd")):
        return plain
    if plain.get("type") == "claude_code" and isinstance(cwd, str) and cwd.startswith(("/", "~/")):
        real = _existing(cwd, environ, Path("/"))
        if real is not None and Path(real).is_dir():
            shaped.worked_on.append(real)
        else:
            shaped.problems.append(Problem((*place, "cwd"), "directory not found or not readable"))
        return plain
    message = (
        "expected a relative path; an agent works in its run's directory. List files for the agent in context_paths"
    )
    shaped.problems.append(Problem((*place, "cwd"), message))
    return plain


def _show_worked_on(shaped: Shaped) -> None:
    """Directories to work on are context paths that may be written, unless a path says otherwise of one. Those paths
    are absolute by now.
    """
    if not shaped.worked_on or not isinstance(given := shaped.data.get("orchestrator", {}), dict):
        return
    orchestrator = shaped.data["orchestrator"] = dict(given)
    if isinstance(paths := orchestrator.get("context_paths", []), list):
        given_paths = [entry.get("path") for entry in paths if isinstance(entry, dict)]
        named = {os.path.realpath(path) for path in given_paths if isinstance(path, str) and "\0" not in path}
        new = [path for path in dict.fromkeys(shaped.worked_on) if os.path.realpath(path) not in named]
        orchestrator["context_paths"] = [*paths, *({"path": path, "permission": "write"} for path in new)]


def _is_place_within(name: Plain) -> bool:
    """A relative path that stays where it starts."""
    if not isinstance(name, str) or not name or len(name) > MAX_PLACE or "\0" in name:
        return False
    path = PurePath(name)
    return not path.is_absolute() and ".." not in path.parts and not name.startswith("~")


def _without_storage(orchestrator: dict[str, Plain], shaped: Shaped) -> dict[str, Plain]:
    for key in STORAGE_KEYS:
        if key in orchestrator and not _is_place_within(orchestrator[key]):
            message = "expected a relative path; massgen keeps snapshots in the run's directory"
            shaped.problems.append(Problem(("orchestrator", key), message))
    return {key: value for key, value in orchestrator.items() if key not in STORAGE_KEYS}


def _shaped_backend(backend: dict[str, Plain], place: Place, shaped: Shaped) -> dict[str, Plain]:
    plain = dict(backend)
    kind = plain.get("type")
    if isinstance(kind, str):
        plain["type"] = _ALIASES.get(kind, kind)
    if kind == "ag2":
        return _shaped_ag2(plain, place, shaped)
    return plain if kind == "scripted" else _with_named_key(plain, place, shaped)


def _shaped_ag2(backend: dict[str, Plain], place: Place, shaped: Shaped) -> dict[str, Plain]:
    plain, problems = ag2_agents.shape(backend, place)
    shaped.problems.extend(problems)
    return {key: _with_named_keys(value, (*place, key), shaped) for key, value in plain.items()}


def _with_named_keys(part: Plain, place: Place, shaped: Shaped) -> Plain:
    """The same for every `llm_config` in a part of an AG2 agent."""
    if isinstance(part, list):
        return [_with_named_keys(item, (*place, number), shaped) for number, item in enumerate(part)]
    if not isinstance(part, dict):
        return part
    named = _with_named_key(part, place, shaped) if place[-1] == "llm_config" else part
    return {key: _with_named_keys(value, (*place, key), shaped) for key, value in named.items()}


def _with_named_key(settings: dict[str, Plain], place: Place, shaped: Shaped) -> dict[str, Plain]:
    """Settings whose `api_key: ${NAME}` has become `api_key_env: NAME`."""
    if "api_key" not in settings:
        return settings
    plain = dict(settings)
    key = plain.pop("api_key")
    variable = _VARIABLE.fullmatch(key) if isinstance(key, str) else None
    if variable is None:
        message = "write api_key_env: NAME; never put a key in a file"
        shaped.problems.append(Problem((*place, "api_key"), message))
    elif "api_key_env" in plain:
        shaped.problems.append(Problem((*place, "api_key"), "write 'api_key' or 'api_key_env', not both"))
    else:
        plain["api_key_env"] = variable[1]
    return plain


def _check_distinct(agents: Plain, shaped: Shaped) -> None:
    """Here and not left to `Config`, which only compares ids when everything else is right."""
    first: dict[str, int] = {}
    for number, agent in enumerate(agents if isinstance(agents, list) else ()):
        agent_id = agent.get("id") if isinstance(agent, dict) else None
        if not isinstance(agent_id, str):
            continue
        if agent_id in first:
            message = f"agent ids must be unique; agents[{first[agent_id]}] has the same id"
            shaped.problems.append(Problem(("agents", number, "id"), message))
        first.setdefault(agent_id, number)


def _take_switches(shaped: Shaped) -> None:
    """An agent with `commands: true` has those of the team, one with `commands: false` none."""
    orchestrator = shaped.data.get("orchestrator")
    team = orchestrator.get("commands") if isinstance(orchestrator, dict) else None
    agents = shaped.data.get("agents")
    for agent in agents if isinstance(agents, list) else ():
        if isinstance(agent, dict) and isinstance(enabled := agent.get("commands"), bool):
            agent["commands"] = {**(team if isinstance(team, dict) and enabled else {}), "enabled": enabled}


def _list_commands(shaped: Shaped) -> Iterator[tuple[dict[str, Plain], dict[str, Plain], Place]]:
    """The team and the agents that say something of commands, what each says, and where."""
    agents = shaped.data.get("agents")
    holders: list[tuple[Plain, Place]] = [(shaped.data.get("orchestrator"), ("orchestrator",))]
    holders += [(agent, ("agents", number)) for number, agent in enumerate(agents if isinstance(agents, list) else ())]
    for holder, place in holders:
        if isinstance(holder, dict) and isinstance(commands := holder.get("commands"), dict):
            yield holder, commands, place


def _replace_removed_level(shaped: Shaped) -> None:
    for holder, commands, place in _list_commands(shaped):
        if commands.get("sandbox") == REMOVED_LEVEL:
            holder["commands"] = {**commands, "sandbox": "auto"}
            note = f"{show_place(shaped.as_written((*place, 'commands', 'sandbox')))}: {REMOVED}"
            shaped.note = "; ".join(filter(None, (shaped.note, note)))


def _find_archives(shaped: Shaped, environ: Mapping[str, str], base_dir: Path) -> None:
    """Where commands have an image of this machine, it has to be there; its path becomes absolute."""
    for holder, commands, place in _list_commands(shaped):
        named = commands.get("image_archive")
        if not isinstance(named, str) or not named:
            continue
        real = _existing(named, environ, base_dir)
        if real is None:
            at = shaped.as_written((*place, "commands", "image_archive"))
            shaped.problems.append(Problem(at, "file or directory not found or not readable"))
        holder["commands"] = {**commands, "image_archive": real or named}


def _context_paths(entries: list[Plain], shaped: Shaped, environ: Mapping[str, str], base_dir: Path) -> list[Plain]:
    found: list[Plain] = []
    for number, entry in enumerate(entries):
        path = entry.get("path") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(path, str) or not path:
            found.append(entry)
            continue
        real = _existing(path, environ, base_dir)
        if real is None:
            message = f"file or directory not found or not readable: {show_name(path)}{_beside(base_dir / path)}"
            shaped.problems.append(Problem(("orchestrator", "context_paths", number, "path"), message))
        found.append({**entry, "path": real or path})
    return found


def _with_skills(
    coordination: dict[str, Plain], shaped: Shaped, environ: Mapping[str, str], base_dir: Path
) -> dict[str, Plain]:
    """With `use_skills` the skills' directory becomes absolute. The default one need not be there; a named one must."""
    named = coordination.get("skills_directory")
    if coordination.get("use_skills") is not True or not isinstance(named, str | None):
        return coordination
    real = _existing(named or DEFAULT_SKILLS, environ, base_dir)
    if real is None and named and PurePath(named) != PurePath(DEFAULT_SKILLS):
        place = ("orchestrator", "coordination", "skills_directory")
        shaped.problems.append(Problem(place, "directory not found or not readable"))
    directory = real or str(base_dir.absolute() / DEFAULT_SKILLS)
    return {**coordination, "skills_directory": directory}


def _beside(path: Path) -> str:
    """The name of the same directory that was most likely meant, as the end of a sentence."""
    if "$" in path.name or "${" in str(path):
        return "; massgen doesn't replace variables here"
    with suppress(OSError, ValueError):
        if near := nearest(path.name, [one.name for one in path.parent.iterdir()], cutoff=0.7):
            return f"; did you mean {near!r}?"
    return ""


def _existing(path: str, environ: Mapping[str, str], base_dir: Path) -> str | None:
    """The path, absolute and free of links; None when nothing is there."""
    home = environ.get("HOME")
    start = Path(home) / path[2:] if path.startswith("~/") and home else base_dir / path
    try:
        return str(start.resolve(strict=True))
    except (OSError, RuntimeError, ValueError):
        return None
