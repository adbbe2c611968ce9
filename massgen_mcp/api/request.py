"""From what a Python caller passed to a request. Whatever is wrong is a `MassgenError` here.

Sessions are in the run store as those of every door, or in this process if nothing is to be kept.
"""

import logging
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_type_hints

from pydantic import TypeAdapter, ValidationError

from massgen_mcp.agents.sections import with_given_keys
from massgen_mcp.api.options import RunArguments, RunOptions
from massgen_mcp.config.adjusted import RequestedLimits
from massgen_mcp.config.build_config import path_entries
from massgen_mcp.config.given import GivenDecide, Paths
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.orchestrator import ContextPath
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import find_home
from massgen_mcp.name_lists import join_names
from massgen_mcp.nearest import nearest
from massgen_mcp.request.build import CallerRequest, RunRequest, build_request
from massgen_mcp.request.output_file import OutputFile
from massgen_mcp.request.question import EarlierTurn
from massgen_mcp.request.team import NamedTeam, Team
from massgen_mcp.runs.access import RunAccess, find_no_user
from massgen_mcp.runs.engine.files import timestamp
from massgen_mcp.runs.sessions.session_records import is_session_id
from massgen_mcp.runs.store.opening import local_engine

MAX_SESSIONS = 1000
"""The session that was used longest ago makes room for a new one."""


class RememberedSessions:
    """Sessions of which a turn was kept nowhere else, with all their turns since. Safe to use from several threads."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, tuple[EarlierTurn, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def history(self, session_id: str) -> tuple[EarlierTurn, ...] | None:
        """The turns so far, oldest first; None for a session that is not remembered here."""
        with self._lock:
            return self._turns.get(session_id)

    def add(self, session_id: str, turn: EarlierTurn, history: tuple[EarlierTurn, ...], *, kept: bool) -> None:
        """A turn has ended that was told `history`. `kept`: the run store knows it, so it need not be remembered."""
        with self._lock:
            if kept and session_id not in self._turns:
                return
            self._turns[session_id] = (*self._turns.get(session_id, history), turn)
            self._turns.move_to_end(session_id)
            while len(self._turns) > MAX_SESSIONS:
                self._turns.popitem(last=False)


def kept_turns(session_id: str) -> tuple[EarlierTurn, ...] | None:
    """The turns that the run store knows; None for a session that it does not know. Raises `MassgenError`
    store_unavailable.
    """
    engine = local_engine(find_home(os.environ))
    if not is_session_id(session_id) or not engine.store.database.exists():
        return None
    try:
        sessions = RunAccess(engine, os.environ, find_no_user).sessions
        return sessions.history(session_id)[0].turns if sessions.runs(session_id) else None
    finally:
        engine.close()


def new_session_id() -> str:
    """Distinct, however many are asked for in one moment."""
    return f"session_{timestamp()[:15]}_{secrets.token_hex(4)}"


SESSIONS = RememberedSessions()
"""Those of this process."""


logger = logging.getLogger("massgen_mcp.api")


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request that can be executed. `config_used` is the team's name in results."""

    request: RunRequest
    config_used: str


async def prepared(
    question: str,
    given: RunArguments,
    *,
    sampling: Mapping[str, Any] | None = None,
    at_most_seconds: float | None = None,
    max_usd: float | None = None,
    cwd: Path | None = None,
) -> PreparedRequest:
    """Check a caller's arguments, as `run` takes them; then come two of LiteLLM, and two of a batch. Raises
    `MassgenError`.
    """
    cwd = cwd or Path.cwd()
    _check_names(given)
    check_types({"question": question, **given})
    team, keeps = _named_team(given), bool(given.get("enable_logging"))
    session_id, history = _session(given, keep_logs=keeps)
    request = await build_request(
        CallerRequest(
            question,
            team,
            cwd=cwd,
            environ=with_given_keys(os.environ),
            context_paths=_context_paths(given.get("context_paths") or ()),
            checks=tuple(given.get("checks") or ()),
            decide=cast("GivenDecide | None", given.get("decide")),
            enable_filesystem=bool(given.get("enable_filesystem", True)),
            use_docker=bool(given.get("use_docker")),
            system_message=given.get("system_message") or None,
            limits=RequestedLimits(max_usd=max_usd, at_most_seconds=at_most_seconds),
            sampling=sampling or {},
            output_file=_output(given.get("output_file")),
            session_id=session_id,
            changes_of=given.get("changes_of"),
            history=history,
            project=cwd if keeps else None,
            listed=keeps,
        )
    )
    logger.info("%s", request.describe_start(cwd))
    if request.team.note:
        logger.warning("%s", request.team.note)
    return PreparedRequest(request, _team_name(request.team, team.models))


def _output(path: str | Path | None) -> OutputFile | None:
    return None if path is None else OutputFile(Path(path).absolute(), "output_file")


def _check_names(given: Mapping[str, object]) -> None:
    known = RunArguments.__optional_keys__
    for name in given:
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else f"the arguments are: {', '.join(sorted(known))}"
            raise MassgenError("invalid_arguments", f"unknown argument {name[:80]!a}; {hint}")


# -- the team ---------------------------------------------------------------------------------------------------------


def _named_team(given: RunArguments) -> NamedTeam:
    """How the caller names the team. Raises `MassgenError` invalid_arguments."""
    config, model, models = given.get("config"), given.get("model"), given.get("models") or None
    named = {"config": config, "config_dict": given.get("config_dict"), "model": model, "models": models}
    chosen = [name for name, value in named.items() if value is not None]
    if len(chosen) > 1:
        raise MassgenError("invalid_arguments", f"{join_names(chosen)} each name a team; pass only one of them")
    for name in ("num_agents", "base_url"):
        if given.get(name) is not None and model is None and models is None:
            raise MassgenError("invalid_arguments", f"{name} needs model or models")
    if isinstance(models, str):
        raise MassgenError("invalid_arguments", "models must be a list of names; pass a single name as model")
    return NamedTeam(
        config=None if config is None else str(config),
        data=given.get("config_dict"),
        models=(model,) if model is not None else tuple(models or ()),
        num_agents=given.get("num_agents"),
        base_url=given.get("base_url"),
    )


def _team_name(team: Team, models: Sequence[str]) -> str:
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
    session_id, conversation = given.get("session_id"), given.get("conversation_history")
    if session_id is not None and conversation is not None:
        raise MassgenError(
            "invalid_arguments", "session_id and conversation_history both give earlier turns; pass only one of them"
        )
    if session_id is None:
        return new_session_id(), read_turns(conversation or ())
    if (history := SESSIONS.history(session_id)) is not None:
        return session_id, history
    if (turns := kept_turns(session_id)) is None:
        raise MassgenError(
            "invalid_arguments",
            f"there is no session {session_id[:80]!a} in this process; leave session_id out to start one, or "
            "pass earlier turns as conversation_history",
        )
    return session_id, () if keep_logs else turns


def read_turns(messages: Sequence[Mapping[str, str]]) -> tuple[EarlierTurn, ...]:
    """Earlier turns out of chat messages: what users said up to each reply of the assistant belongs to it."""
    turns: list[EarlierTurn] = []
    asked_so_far: list[str] = []
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant") or not isinstance(content, str):
            raise MassgenError(
                "invalid_arguments",
                "each message in the conversation needs a role (user or assistant) and text content",
            )
        if role == "user":
            asked_so_far.append(content)
        else:
            turns.append(EarlierTurn(question="\n\n".join(asked_so_far), answer=content))
            asked_so_far = []
    if asked_so_far:
        raise MassgenError(
            "invalid_arguments",
            "the conversation must not end with a user message; pass that message as the question",
        )
    return tuple(turns)


# ---------------------------------------------------------------------------------------------------------------------
# Whether what a Python caller passed is of the types that `run` takes.


_TYPES: dict[str, Any] = {
    **{name: kind for name, kind in get_type_hints(RunArguments).items() if kind is not bool},
    "question": str,
    "models": str | Sequence[str] | None,
    "backend": str | None,
    "backends": str | Sequence[str] | None,
    "config_dict": Mapping[Any, Any] | None,
    "context_paths": str | Sequence[str | Mapping[str, Any]] | None,
    "conversation_history": Sequence[Mapping[Any, Any]] | None,
    "decide": GivenDecide | None,
}
"""Those of `RunArguments` and of `build_config`, wider where a fault is told better later on."""


def check_types(arguments: Mapping[str, object]) -> None:
    """Raises `MassgenError` invalid_arguments that names every argument of a wrong type, without its value."""
    problems: list[str] = []
    for name, value in arguments.items():
        try:
            TypeAdapter[Any](_TYPES.get(name, object)).validate_python(value, strict=True)
        except ValidationError as error:
            match error.errors(include_input=False)[0]:
                case {"type": "string_unicode"}:
                    fault = "not valid Unicode text; use UTF-8"
                case {"type": "literal_error", "ctx": {"expected": expected}}:
                    fault = f"to be {expected}"
                case _:
                    fault = "of the wrong type"
            problems.append(f"{name} is {fault}")
    if problems:
        raise MassgenError("invalid_arguments", "; ".join(problems))
