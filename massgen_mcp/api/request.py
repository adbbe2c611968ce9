"""From what a Python caller passed to a request. Whatever is wrong is a `MassgenError` here."""

import difflib
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from massgen_mcp.api.arguments import check_types
from massgen_mcp.api.options import RunOptions
from massgen_mcp.api.sessions import SESSIONS, kept_turns, new_session_id
from massgen_mcp.config.adjusted import CallLimits
from massgen_mcp.config.build_config import path_entries
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models import ContextPath, EarlierTurn
from massgen_mcp.config.paths import Paths
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.build import Given, build_request
from massgen_mcp.request.output_file import OutputFile
from massgen_mcp.request.run_request import RunRequest
from massgen_mcp.request.team import Named, Team

logger = logging.getLogger("massgen_mcp.api")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that can be executed. `config_used` is the team's name in results."""

    request: RunRequest
    config_used: str


async def prepared(
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
    sampling: Mapping[str, Any] | None = None,
    at_most_seconds: float | None = None,
) -> Prepared:
    """Check a caller's arguments, as `run` takes them; the last two are LiteLLM's. Raises `MassgenError`."""
    given = options or RunOptions()
    _known(given)
    named = {"config": config, "model": model, "models": models, "num_agents": num_agents, "output_file": output_file}
    check_types({"question": question, **named, **given})
    if use_docker:
        raise MassgenError(
            "invalid_arguments",
            "use_docker: commands do not run in Docker here; leave it out. Agents work in directories of their own",
        )
    team = _named(config, model, models, num_agents, given)
    session_id, history = _session(given, keep_logs=enable_logging)
    request = await build_request(
        Given(
            question,
            team,
            cwd=Path.cwd(),
            environ=os.environ,
            context_paths=_context_paths(given.get("context_paths") or ()),
            enable_filesystem=enable_filesystem,
            system_message=given.get("system_message") or None,
            limits=CallLimits(at_most_seconds=at_most_seconds),
            sampling=sampling or {},
            output_file=_output(output_file),
            session_id=session_id,
            history=history,
            project=Path.cwd() if enable_logging else None,
            listed=enable_logging,
        )
    )
    logger.info("%s", request.describe_start(Path.cwd()))
    return Prepared(request, _name(request.team, team.models))


def _output(path: str | Path | None) -> OutputFile | None:
    return None if path is None else OutputFile(Path(path).absolute(), "output_file")


def _known(given: Mapping[str, object]) -> None:
    known = RunOptions.__optional_keys__
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(known))}"
            raise MassgenError("invalid_arguments", f"unknown argument {name[:80]!a}; {hint}")


# -- the team ---------------------------------------------------------------------------------------------------------


def _named(
    config: str | Path | None,
    model: str | None,
    models: Sequence[str] | None,
    num_agents: int | None,
    given: RunOptions,
) -> Named:
    """How the caller names the team. Raises `MassgenError` invalid_arguments."""
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
    return Named(
        config=None if config is None else str(config),
        data=data,
        models=(model,) if model is not None else tuple(models or ()),
        num_agents=num_agents,
        base_url=given.get("base_url"),
    )


def _name(team: Team, models: Sequence[str]) -> str:
    """The team's name in results."""
    agents = len(team.config.agents)
    if models:
        dealt = ",".join(models[place % len(models)] for place in range(agents))
        return f"single-agent:{models[0]}" if agents == 1 else f"multi-agent:{dealt}"
    if team.path is not None:
        return str(team.path)
    return "default" if team.is_default else "config_dict"


def _context_paths(paths: Paths) -> tuple[ContextPath, ...]:
    """As the loader checks those of a config. Raises `MassgenError` config_invalid."""
    if not paths:
        return ()
    data = {
        "agent": {"backend": {"type": "scripted"}},
        "orchestrator": {"context_paths": path_entries(paths)},
    }
    return config_from_data(data, "arguments", environ=os.environ).orchestrator.context_paths


# -- the conversation -------------------------------------------------------------------------------------------------


def _session(given: RunOptions, *, keep_logs: bool) -> tuple[str, tuple[EarlierTurn, ...]]:
    """The session, and what was said before, unless the run store says it."""
    session_id, said = given.get("session_id"), given.get("conversation_history")
    if session_id is not None and said is not None:
        raise MassgenError("invalid_arguments", "session_id and conversation_history each say what came before")
    if session_id is None:
        return new_session_id(), turns_of(said or ())
    if (history := SESSIONS.history(session_id)) is not None:
        return session_id, history
    if (turns := kept_turns(session_id)) is None:
        raise MassgenError(
            "invalid_arguments",
            f"there is no session {session_id[:80]!a} in this process; leave session_id out to begin one, or "
            "hand over what was said as conversation_history",
        )
    return session_id, () if keep_logs else turns


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
