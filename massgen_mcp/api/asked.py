"""From what a Python caller passed to one checked request: question, team, history, and what to keep.

Must not execute anything. Whatever is wrong is a `MassgenError` here, before a model was asked.
"""

import difflib
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from massgen_mcp.api.arguments import check_types
from massgen_mcp.api.sessions import SESSIONS, new_session_id
from massgen_mcp.config.adjusted import rechecked
from massgen_mcp.config.build_config import Paths, path_entries
from massgen_mcp.config.loader import config_from_data, require_keys
from massgen_mcp.config.models import Config, ContextPath, EarlierTurn
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.team import Named, Team, choose_team, describe_start
from massgen_mcp.request.trust import Consent
from massgen_mcp.runs.checks import check_question
from massgen_mcp.runs.directory import check_output

logger = logging.getLogger("massgen_mcp.api")


class RunOptions(TypedDict, total=False):
    """What `run` takes by name besides its listed parameters."""

    config_dict: Mapping[str, Any] | None
    """A config as a dictionary, such as `build_config` makes."""
    context_paths: Paths | None
    """Files and directories that agents may use, besides those of the config. Only text: may be written to."""
    session_id: str | None
    """Continue the session of an earlier result of this process: agents see its questions and final answers."""
    conversation_history: Sequence[Mapping[str, str]] | None
    """Earlier turns as `{"role": "user" | "assistant", "content": ...}`, for a conversation that began elsewhere."""
    system_message: str | None
    """Said to every agent, after the system message that the config gives it."""
    base_url: str | None
    """Where `model` or `models` are asked, instead of at their providers'."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that can be executed. `config_used` is for people."""

    question: str
    config: Config
    config_used: str
    session_id: str
    history: tuple[EarlierTurn, ...]
    keep_logs: bool
    output_file: Path | None


async def asked(
    question: str,
    *,
    config: str | Path | None = None,
    model: str | None = None,
    models: Sequence[str] | None = None,
    num_agents: int | None = None,
    use_docker: bool = False,
    enable_filesystem: bool = True,
    enable_logging: bool = False,
    output_file: str | Path | None = None,
    options: RunOptions | None = None,
) -> Asked:
    """Check a caller's arguments, as `run` takes them. Raises `MassgenError`."""
    given = options or RunOptions()
    _known(given)
    named = {"config": config, "model": model, "models": models, "num_agents": num_agents, "output_file": output_file}
    check_types({"question": question, **named, **given})
    check_question(question)
    if use_docker:
        raise MassgenError(
            "invalid_arguments",
            "use_docker: commands do not run in Docker here; leave it out. Agents work in directories of their own",
        )
    target = _output(output_file)
    chosen, used = await _team(config, model, models, num_agents, given)
    team = chosen.config
    if not enable_filesystem:
        team = _without_files(team, given.get("context_paths"))
    elif paths := given.get("context_paths"):
        team = _with_paths(team, paths)
    if said := given.get("system_message"):
        team = _with_system_message(team, said)
    team = rechecked(_without_questions(team))
    require_keys(team, os.environ)
    logger.info("%s", describe_start(team, chosen.source, os.environ, Path.cwd()))
    session_id, history = _session(given)
    return Asked(question, team, used, session_id, history, enable_logging, target)


def _known(given: Mapping[str, object]) -> None:
    known = RunOptions.__optional_keys__
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(known))}"
            raise MassgenError("invalid_arguments", f"unknown argument {name[:80]!a}; {hint}")


def _output(path: str | Path | None) -> Path | None:
    if path is None:
        return None
    target = Path(path).absolute()
    check_output(target, "output_file")
    return target


# -- the team ---------------------------------------------------------------------------------------------------------


async def _team(
    config: str | Path | None,
    model: str | None,
    models: Sequence[str] | None,
    num_agents: int | None,
    given: RunOptions,
) -> tuple[Team, str]:
    """The team by the rule of every door, and its name in results."""
    data = given.get("config_dict")
    named = {"config": config, "config_dict": data, "model": model, "models": models or None}
    chosen = [name for name, value in named.items() if value is not None]
    if len(chosen) > 1:
        raise MassgenError("invalid_arguments", f"{' and '.join(chosen)} name a team each; name one")
    by_model = model is not None or bool(models)
    for name, value in (("num_agents", num_agents), ("base_url", given.get("base_url"))):
        if value is not None and not by_model:
            raise MassgenError("invalid_arguments", f"{name} goes with model or models")
    if isinstance(models, str):
        raise MassgenError("invalid_arguments", "models is a list of names; for one name there is model")
    team = await choose_team(
        Named(
            config=None if config is None else str(config),
            data=data,
            models=(model,) if model is not None else tuple(models or ()),
            num_agents=num_agents,
            base_url=given.get("base_url"),
        ),
        cwd=Path.cwd(),
        environ=os.environ,
        consent=Consent(),
    )
    if by_model:
        listed = [model] if model is not None else list(models or ())
        return team, _names(listed, len(team.config.agents))
    if team.path is not None:
        return team, str(team.path)
    return team, "default" if team.is_default else "config_dict"


def _names(models: Sequence[str], agents: int) -> str:
    if agents == 1:
        return f"single-agent:{models[0]}"
    return f"multi-agent:{','.join(models[place % len(models)] for place in range(agents))}"


def _without_files(config: Config, paths: Paths | None) -> Config:
    if paths or config.orchestrator.context_paths:
        raise MassgenError("invalid_arguments", "context_paths are files; leave enable_filesystem=False out")
    off = {"task_planning_filesystem_mode": False, "enable_memory_filesystem_mode": False}
    coordination = config.orchestrator.coordination.model_copy(update=off)
    orchestrator = config.orchestrator.model_copy(update={"coordination": coordination, "enable_filesystem": False})
    return config.model_copy(update={"orchestrator": orchestrator})


def _with_paths(config: Config, paths: Paths) -> Config:
    if not config.orchestrator.enable_filesystem:
        raise MassgenError("invalid_arguments", "context_paths: the config says enable_filesystem: false")
    found = (*config.orchestrator.context_paths, *_checked_paths(paths))
    return config.model_copy(update={"orchestrator": config.orchestrator.model_copy(update={"context_paths": found})})


def _checked_paths(paths: Paths) -> tuple[ContextPath, ...]:
    """As the loader checks those of a config."""
    data = {
        "agent": {"backend": {"type": "scripted"}},
        "orchestrator": {"context_paths": path_entries(paths)},
    }
    return config_from_data(data, "arguments", environ=os.environ).orchestrator.context_paths


def _without_questions(config: Config) -> Config:
    """Nobody is there to answer what agents would ask, nor to raise a budget."""
    orchestrator = config.orchestrator.model_copy(update={"allow_questions": False})
    budget = config.budget.model_copy(update={"at_cap": "finish"})
    return config.model_copy(update={"orchestrator": orchestrator, "budget": budget})


def _with_system_message(config: Config, said: str) -> Config:
    agents = tuple(
        agent.model_copy(update={"system_message": "\n\n".join(filter(None, (agent.system_message, said)))})
        for agent in config.agents
    )
    return config.model_copy(update={"agents": agents})


# -- the conversation -------------------------------------------------------------------------------------------------


def _session(given: RunOptions) -> tuple[str, tuple[EarlierTurn, ...]]:
    session_id, said = given.get("session_id"), given.get("conversation_history")
    if session_id is not None and said is not None:
        raise MassgenError("invalid_arguments", "session_id and conversation_history each say what came before")
    if session_id is not None:
        return session_id, SESSIONS.history(session_id)
    return new_session_id(), turns_of(said or ())


def turns_of(messages: Sequence[Mapping[str, str]]) -> tuple[EarlierTurn, ...]:
    """Earlier turns out of chat messages: what users said up to each reply of the assistant belongs to it."""
    turns: list[EarlierTurn] = []
    asked_so_far: list[str] = []
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant") or not isinstance(content, str):
            raise MassgenError(
                "invalid_arguments", "a message of the conversation has the role user or assistant, and text as content"
            )
        if role == "user":
            asked_so_far.append(content)
        else:
            turns.append(EarlierTurn(question="\n\n".join(asked_so_far), answer=content))
            asked_so_far = []
    if asked_so_far:
        raise MassgenError("invalid_arguments", "the conversation ends with the user; put that into the question")
    return tuple(turns)
