"""The settings an `AgentConfig` carries for its team: time limits, and what agents do besides answering and voting.

One owner per default. These classes are what Python callers fill in: mutable, checked when they are used. The engine's
own settings are the frozen models of `config.models`; a default that both have is read from there and written nowhere
else, so it cannot drift.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, cast

from massgen_mcp.config.models import orchestrator
from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.errors import MassgenError
from massgen_mcp.nearest import nearest

_TIMEOUTS = orchestrator.TimeoutSettings()
_COORDINATION = OrchestratorConfig().coordination

T = TypeVar("T")


class UnsupportedSettingError(MassgenError):
    """A setting that this engine cannot honour. `setting` is its name, the message says what to do instead."""

    def __init__(self, setting: str, message: str) -> None:
        super().__init__("config_invalid", f"{setting}: {message}")
        self.setting = setting


@dataclass
class TimeoutConfig:
    """How long a team may work.

    `orchestrator_timeout_seconds`: the whole run, in seconds. A run that is cut off returns its best answer so far.
    """

    orchestrator_timeout_seconds: int = int(_TIMEOUTS.orchestrator_timeout_seconds)


@dataclass
class CoordinationConfig:
    """What agents do besides answering and voting. The names are those of `orchestrator.coordination` in a YAML config.

    - `enable_planning_mode`: until a winner presents, tools with side effects are described and not executed; only the
      winner executes them. `planning_mode_instruction` is what agents are told then.
    - `max_orchestration_restarts`: further attempts that a winner may ask for when it finds its own final answer
      insufficient; 2 means at most three attempts.
    - `enable_agent_task_planning`: agents get tools for a task list with dependencies, of at most `max_tasks_per_plan`
      tasks. With `task_planning_filesystem_mode` the list is also kept in `tasks/` of the workspace.
    - `enable_memory_filesystem_mode`: agents get tools for memories. Short-term ones are shown to the whole team,
      long-term ones are loaded on demand.
    - `use_skills`: agents may read skills: the built-in ones named in `massgen_skills` ("file_search"), and those
      found in `skills_directory`.
    """

    enable_planning_mode: bool = _COORDINATION.enable_planning_mode
    planning_mode_instruction: str = _COORDINATION.planning_mode_instruction
    max_orchestration_restarts: int = _COORDINATION.max_orchestration_restarts
    enable_agent_task_planning: bool = _COORDINATION.enable_agent_task_planning
    max_tasks_per_plan: int = _COORDINATION.max_tasks_per_plan
    task_planning_filesystem_mode: bool = _COORDINATION.task_planning_filesystem_mode
    enable_memory_filesystem_mode: bool = _COORDINATION.enable_memory_filesystem_mode
    use_skills: bool = _COORDINATION.use_skills
    massgen_skills: list[str] = field(default_factory=lambda: list[str](_COORDINATION.massgen_skills))
    skills_directory: str = _COORDINATION.skills_directory


def settings_from(kind: type[T], data: object, where: str) -> T:
    """An instance of a settings class out of a mapping (or an instance); what the mapping leaves out is at its default.

    Raises `MassgenError("config_invalid")` for anything else than a mapping, and for an unknown key, with the nearest.
    """
    if isinstance(data, kind):
        return data
    return kind(**checked_keys(data, [one.name for one in fields(kind) if one.init], where))  # pyright: ignore[reportArgumentType] - T is one of the dataclasses here


def checked_keys(data: object, known: Sequence[str], where: str) -> dict[str, Any]:
    """A copy of a mapping that has no other keys than `known`. Raises `MassgenError("config_invalid")`."""
    copied = mapping(data, where)
    for key in copied:
        if key not in known:
            near = nearest(key, known)
            hint = f"did you mean {near!r}?" if near else f"known here: {', '.join(known)}"
            raise MassgenError("config_invalid", f"{where}: unknown key {key[:100]!a}; {hint}")
    return copied


def mapping(data: object, where: str) -> dict[str, Any]:
    """A copy of a mapping. Raises `MassgenError("config_invalid")` for anything else."""
    if not isinstance(data, Mapping):
        raise MassgenError("config_invalid", f"{where}: expected a mapping, not {type(data).__name__[:60]}")
    return {str(key): value for key, value in cast("Mapping[object, Any]", data).items()}
