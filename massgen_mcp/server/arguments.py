"""What the arguments of the tools may be, and what they mean: which team is named, what it may read.

Some clients make every argument required, and their models fill in what they have no use for: null, an empty text or an
empty list stands for an argument that is not given, and so does 0 where no amount can be 0.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, WithJsonSchema

from massgen_mcp.changes.git import is_address
from massgen_mcp.config.adjusted import given_path
from massgen_mcp.config.diagnostics import show_name
from massgen_mcp.config.models.orchestrator import ContextPath
from massgen_mcp.config.providers.model_names import name_strong_model
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.team import NamedTeam

MOST = 2**53 - 1
"""The largest whole number that every JSON reader takes exactly; nothing here counts or dates so far."""


def _not_absurd(number: float | None) -> float | None:
    if number is not None and not -MOST <= number <= MOST:
        raise ValueError(f"must be no larger than {MOST}")
    return number


MAX_ANSWERS = 100
"""Of one agent."""
BOUNDED = AfterValidator(_not_absurd)
"""Checked, but not in the published schemas: a parent agent pays for every word there."""
NOTHING: Sequence[object] = (None, "", [], {})
OTHER_NAMES = {"start_run": {"config": "team"}}
"""By tool: names that are taken, too, and stand in no schema. LangChain keeps `config` for itself."""


def _parse_moment(given: object) -> object:
    """Return an ISO 8601 time as seconds since the epoch; of local time where it names no zone. Numbers are seconds."""
    if not isinstance(given, str):
        return given
    with suppress(ValueError):
        return float(given)
    try:
        return datetime.fromisoformat(given).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ValueError("must be a time such as 2026-11-28T09:00") from None


Moment = Annotated[
    float, BeforeValidator(_parse_moment), BOUNDED, WithJsonSchema({"type": "string", "format": "date-time"})
]


class _PathGiven(BaseModel, frozen=True, extra="forbid"):
    path: str
    permission: Literal["read", "write"] = "read"


def _with_its_name(given: str | Mapping[str, object]) -> Mapping[str, object]:
    return given if isinstance(given, Mapping) else {"path": given}


PathGiven = Annotated[
    _PathGiven,
    BeforeValidator(_with_its_name),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"path": {"type": "string"}, "permission": {"enum": ["read", "write"]}},
                    "required": ["path"],
                },
            ]
        }
    ),
]
"""Or the path alone. Its published schema stands where it is used: not every client follows references."""


def as_published(tool: str, arguments: Mapping[str, object], optional: Collection[str]) -> dict[str, object]:
    """The arguments under the names of the tool's schema, without those of `optional` that stand for nothing. Raises
    `MassgenError` invalid_arguments for two names of one argument that say different things.
    """
    given = dict(arguments)
    for other, name in OTHER_NAMES.get(tool, {}).items():
        value = given.pop(other, None)
        if given.get(name) in NOTHING:
            given[name] = value
        elif value not in NOTHING and value != given[name]:
            raise MassgenError("invalid_arguments", f"`{other}` is another name for `{name}`; pass only `{name}`")
    return {name: value for name, value in given.items() if name not in optional or value not in NOTHING}


def named_team(team: str | None, models: list[str] | None, num_agents: int | None, *, guest: bool) -> NamedTeam:
    """Return how the call names its team. `guest`: files of the server are refused. Raises `MassgenError`
    invalid_arguments.
    """
    if team is not None and models:
        raise MassgenError("invalid_arguments", "give either `team` or `models`, not both")
    if team is not None and num_agents is not None:
        raise MassgenError("invalid_arguments", "`num_agents` needs `models`; the team in `team` has its own agents")
    if num_agents is not None and not models:
        raise MassgenError("invalid_arguments", "`num_agents` needs `models`")
    return NamedTeam(
        config=None if team is None else _source(team, guest=guest),
        shown=team,
        by_agent=True,
        models=tuple(name_strong_model(one) for one in models or ()),
        num_agents=num_agents,
    )


def _source(team: str, *, guest: bool) -> str:
    """A bare name is a packaged example; anything that looks like a path is one."""
    is_path = team.startswith((".", "/", "~", "@")) or team.endswith((".yaml", ".yml", ".json"))
    if is_path and guest:
        raise _refusal("`team`")
    return team if is_path else f"@examples/{team}"


def _refusal(argument: str) -> MassgenError:
    message = f"{argument} names a file on the server, but users can't access the server's files; use a team from "
    return MassgenError("invalid_arguments", f"{message}list_configs, and put what the agents need into the question")


def context_path(path: str, permission: Literal["read", "write"] = "read", *, guest: bool) -> ContextPath:
    """Return a path of the call, checked. `guest`: files of the server are refused, before anything is looked for.
    Raises `MassgenError` invalid_arguments.
    """
    return given_path(_existing(path, guest=guest), permission)


def _existing(path: str, *, guest: bool) -> str:
    """The path without `~`. Raises `MassgenError` invalid_arguments unless it is absolute and something is there."""
    if is_address(path):
        return path
    if guest:
        raise _refusal("context_paths")
    try:
        absolute = Path(path).expanduser()
        if absolute.is_absolute():
            absolute.stat()
            return str(absolute)
        problem = "must be absolute"
    except (OSError, RuntimeError, ValueError):  # also one that is too long, of nobody's home, or no path at all
        problem = "doesn't exist or isn't readable"
    raise MassgenError("invalid_arguments", f"context path {show_name(path)} {problem}")
