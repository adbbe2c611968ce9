"""A config with what one call changes of it. Pure.

`model_copy` checks nothing, so whoever has made all changes has the whole `rechecked`, before it is stored or executed:
what a runner reads later holds to the limits of a config.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os.path import normpath
from typing import Any, Literal

from pydantic import ValidationError

from massgen_mcp.config.diagnostics import problems_of, show_name, show_place
from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.http_backends import HttpBackendConfig
from massgen_mcp.config.models.orchestrator import ContextPath
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import Decide


@dataclass(frozen=True, slots=True)
class RequestedLimits:
    """A call's own limits; None leaves the config's."""

    max_usd: float | None = None
    max_seconds: float | None = None
    at_most_seconds: float | None = None
    """A time limit that holds if it is the shorter one."""
    max_answers: int | None = None


def with_limits(config: Config, limits: RequestedLimits) -> Config:
    budget, timeouts = config.budget, config.timeout_settings
    seconds = timeouts.orchestrator_timeout_seconds if limits.max_seconds is None else limits.max_seconds
    if limits.at_most_seconds is not None:
        seconds = min(limits.at_most_seconds, seconds)
    return _with_orchestrator(config, max_new_answers_per_agent=limits.max_answers).model_copy(
        update={
            "budget": budget if limits.max_usd is None else budget.model_copy(update={"max_usd": limits.max_usd}),
            "timeout_settings": timeouts.model_copy(update={"orchestrator_timeout_seconds": seconds}),
        }
    )


def given_path(path: str, permission: Literal["read", "write"] = "read") -> ContextPath:
    """A path that a call or a person names. Raises `MassgenError` invalid_arguments."""
    try:
        return ContextPath(path=path, permission=permission)
    except ValidationError as error:
        message = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise MassgenError("invalid_arguments", f"context path {show_name(path)}: {message}") from error


def with_context_paths(config: Config, paths: Sequence[ContextPath]) -> Config:
    """The config with further paths that agents may use; one that it names already is the same, with `write` if one of
    both says so. Raises `MassgenError` invalid_arguments where they cannot.
    """
    if not paths:
        return config
    if not config.orchestrator.enable_filesystem:
        raise MassgenError(
            "invalid_arguments", "context_paths need file tools, but the config sets enable_filesystem: false"
        )
    given = {normpath(one.path): one for one in paths}
    own = tuple(_widened(one, given.get(normpath(one.path))) for one in config.orchestrator.context_paths)
    known = {normpath(one.path) for one in own}
    further = (one for one in paths if normpath(one.path) not in known)
    return _with_orchestrator(config, context_paths=(*own, *further))


def with_places(config: Config, name_of: Callable[[str], str]) -> Config:
    """The config whose context paths are called so."""
    paths = config.orchestrator.context_paths
    return _with_orchestrator(
        config, context_paths=tuple(one.model_copy(update={"path": name_of(one.path)}) for one in paths)
    )


def _widened(own: ContextPath, given: ContextPath | None) -> ContextPath:
    return own.model_copy(update={"permission": "write"}) if given and given.permission == "write" else own


def without_work(config: Config) -> Config:
    """The config without its own context paths and checks."""
    return _with_orchestrator(config, context_paths=(), checks=())


def with_checks(config: Config, commands: Sequence[str]) -> Config:
    """The config with checks of the call besides its own."""
    checks = dict.fromkeys((*config.orchestrator.checks, *commands))
    return _with_orchestrator(config, checks=tuple(checks))


def with_strategy(config: Config, decide: Decide | None) -> Config:
    """The config whose winner is found as the call says; None: as it says itself."""
    return _with_orchestrator(config, decide=decide)


def without_scripts(config: Config) -> Config:
    """The config whose agents may write scripts, but none of them runs."""
    return _with_orchestrator(config, run_scripts=False)


def without_files(config: Config) -> Config:
    """The config for agents without workspaces. Raises `MassgenError` invalid_arguments if they are given paths."""
    if config.orchestrator.context_paths:
        raise MassgenError("invalid_arguments", "context_paths need file tools; leave enable_filesystem=False out")
    off = {"task_planning_filesystem_mode": False, "enable_memory_filesystem_mode": False}
    coordination = config.orchestrator.coordination.model_copy(update=off)
    return _with_orchestrator(config, coordination=coordination, enable_filesystem=False)


def with_containers(config: Config, image: str) -> Config:
    """The config whose agents run commands in Docker, in containers of `image` where it names no container itself."""

    def in_container(commands: CommandsConfig) -> CommandsConfig:
        if commands.enabled and commands.in_container:
            return commands
        return commands.model_copy(update={"enabled": True, "sandbox": "docker", "image": image})

    agents = tuple(
        agent.model_copy(update={"commands": in_container(config.commands_of(agent))}) for agent in config.agents
    )
    return config.model_copy(update={"agents": agents})


def with_system_message(config: Config, text: str, *, replaces: bool) -> Config:
    """Every agent is told `text`, in place of its own system message or after it."""
    agents = tuple(
        agent.model_copy(
            update={"system_message": text if replaces else "\n\n".join(filter(None, (agent.system_message, text)))}
        )
        for agent in config.agents
    )
    return config.model_copy(update={"agents": agents})


def without_caller(config: Config) -> Config:
    """The config where nobody can answer: agents ask nothing, and a reached budget ends the run."""
    budget = config.budget.model_copy(update={"at_cap": "finish"})
    return _with_orchestrator(config, allow_questions=False).model_copy(update={"budget": budget})


def with_sampling(config: Config, sampling: Mapping[str, Any]) -> Config:
    """Every model that is asked over HTTP gets these settings. Raises `MassgenError` invalid_arguments."""
    if not sampling:
        return config
    agents = tuple(
        agent.model_copy(update={"backend": _sampled(agent.backend, sampling)})
        if isinstance(agent.backend, HttpBackendConfig)
        else agent
        for agent in config.agents
    )
    return config.model_copy(update={"agents": agents})


def rechecked(config: Config) -> Config:
    """The same config, if it holds to its limits.

    Raises `MassgenError("config_invalid")` naming everything that a config does not allow.
    """
    try:
        return Config.model_validate(config.model_dump(mode="json"))
    except ValidationError as error:
        message = "; ".join(f"{show_place(problem.place)}: {problem.message}" for problem in problems_of(error))
        raise MassgenError("config_invalid", message) from None


def _with_orchestrator(config: Config, **changes: object) -> Config:
    """None leaves what the config says."""
    changed = {name: value for name, value in changes.items() if value is not None}
    return config.model_copy(update={"orchestrator": config.orchestrator.model_copy(update=changed)})


def _sampled(backend: HttpBackendConfig, sampling: Mapping[str, Any]) -> HttpBackendConfig:
    try:
        return type(backend).model_validate({**backend.model_dump(), **sampling})
    except ValueError as error:
        raise MassgenError("invalid_arguments", f"{', '.join(sampling)}: not a valid value for models") from error
