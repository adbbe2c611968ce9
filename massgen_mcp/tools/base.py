"""What a tool is to an agent's round, and how a model's arguments become typed ones.

A model's mistake is an ordinary result with `is_error`, so that the model can correct it; only defects of this program
raise.
"""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Generic, Protocol, TypeVar, cast, runtime_checkable

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from massgen_mcp.backends.base import JsonObject, JsonValue, ToolCall, ToolSpec
from massgen_mcp.nearest import nearest
from massgen_mcp.workspace.guard import PathRefused


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the model reads after its call."""

    text: str
    is_error: bool = False
    foreign: bool = False
    """Whether the text, or a part of it, was written by somebody else than the tool: it is then marked as such."""


class Tool(Protocol):
    """Something a model may call. With `side_effects` it is not run in planning mode."""

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def side_effects(self) -> bool: ...

    @property
    def keeps_state(self) -> bool:
        """Whether the tool remembers calls in memory: in a resumed run they are made again, in order."""
        ...

    async def run(self, arguments: JsonObject) -> ToolResult:
        """Do it. Raises nothing for wrong arguments or refused paths: those are results."""
        ...


@runtime_checkable
class KeyedTool(Protocol):
    """A tool whose call must have its effect once, also when the process is lost in the middle of it."""

    async def run_once(self, arguments: JsonObject, key: str) -> ToolResult:
        """As `Tool.run`, which is not called then. `key` is the same when the call is made again after a loss, and no
        other call of the run has it.
        """
        ...


@runtime_checkable
class RunsOnce(Protocol):
    """What a tool has beside `Tool` whose calls must not be made twice. That a call begins is on disk before it does;
    in a resumed run one without a result is not made again, and the model is told so.
    """

    def shown(self, arguments: JsonObject) -> str:
        """What the call is to do, in a few words. Raises nothing."""
        ...


class ToolRefused(Exception):
    """The call was understood and cannot be done; the message tells the model what to do instead. `foreign`: as in
    `ToolResult`.
    """

    def __init__(self, message: str, *, foreign: bool = False) -> None:
        super().__init__(message)
        self.foreign = foreign


class Arguments(BaseModel):
    """Base of a tool's arguments: frozen, and unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def well_formed(text: str) -> str:
    """`text` with halves of surrogate pairs, which nothing can encode, joined or replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _well_formed_if_text(value: object) -> object:
    return well_formed(value) if isinstance(value, str) else value


WellFormedText = Annotated[str, BeforeValidator(_well_formed_if_text)]
"""Text of a model, made well-formed. Not for paths: a path that is not well-formed is refused."""

ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


def decoded(call: ToolCall) -> JsonObject:
    """The arguments of a call as an object. Raises `ToolRefused` for anything else than one JSON object."""
    try:
        arguments: object = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise ToolRefused(f"the arguments of {call.name[:60]} are not valid JSON ({error}); call it again") from error
    if not isinstance(arguments, dict):
        raise ToolRefused(f"the arguments of {call.name[:60]} must be a JSON object; call it again")
    return cast("JsonObject", arguments)


def parse_arguments(kind: type[ArgumentsT], arguments: JsonObject) -> ArgumentsT:
    """Check a model's arguments; one that is null and need not be there is left out. Raises `ToolRefused` naming each
    wrong field.
    """
    optional = {name for name, field in kind.model_fields.items() if not field.is_required()}
    given = {well_formed(name): value for name, value in arguments.items() if value is not None or name not in optional}
    needless = find_needless(kind, arguments)
    given = {name: value for name, value in given.items() if name not in needless}
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        known = list(kind.model_fields)
        problems = [
            _problem(item["type"], ".".join(str(part) for part in item["loc"]), item["msg"], known)
            for item in error.errors(include_url=False, include_context=False, include_input=False)
        ]
    raise ToolRefused("wrong arguments: " + "; ".join(problems[:5]))


def find_needless(kind: type[Arguments], arguments: JsonObject) -> frozenset[str]:
    """Return the unknown arguments without which a call does the same: those that restrict nothing, in a call that has
    all that it needs. None where one may be a known name that was written in another way.
    """
    known = kind.model_fields
    if any(field.is_required() and name not in arguments for name, field in known.items()):
        return frozenset()
    unknown = {name: value for name, value in arguments.items() if name not in known}
    return frozenset(
        well_formed(name)
        for name, value in unknown.items()
        if not _RESTRICTS.search(name) or value in (None, False, "")
    )


_RESTRICTS = re.compile(
    r"cwd|work_?dir|director|dir$|folder|path|file|dry|safe|sandbox|read_?only|limit|max|min|only|exclu|inclu|ignore|filter"
    r"|except|until|before|after|from|to$|range|line|start|end|offset|count|glob|pattern|mode|permission|user|env|timeout"
    r"|expect|check|confirm|approv|type|recurs|depth|if_|when|encod|append|overwrite|create|backup|edits|all$",
    re.IGNORECASE,
)
"""Parts of names of arguments that may make a call do less, or something else: they are not passed over."""


@dataclass(frozen=True, slots=True)
class CheckedTool(Generic[ArgumentsT]):
    """A tool that is one function of its checked arguments. What it refuses is a result."""

    spec: ToolSpec
    kind: type[ArgumentsT]
    act: Callable[[ArgumentsT], Awaitable[ToolResult]]
    """Raises `ToolRefused` or `PathRefused` for what cannot be done."""
    side_effects: bool = False
    keeps_state: bool = False

    async def run(self, arguments: JsonObject) -> ToolResult:
        try:
            result = await self.act(parse_arguments(self.kind, arguments))
            needless = sorted(find_needless(self.kind, arguments))
            if not needless:
                return result
            names = ", ".join(ascii(name[:40]) for name in needless[:5])
            return replace(result, text=f"[ignored, there is no such argument: {names}]\n{result.text}")
        except ToolRefused as refused:
            return ToolResult(str(refused), is_error=True, foreign=refused.foreign)
        except PathRefused as refused:
            return ToolResult(str(refused), is_error=True)


_UNTOLD = frozenset({"title", "description"})
"""Of a schema, what says no more than the tool's spec does."""


@cache
def tool_spec(name: str, description: str, kind: type[Arguments]) -> ToolSpec:
    """The spec of a tool whose arguments are `kind`, with the smallest schema that says the same.

    Made once: every agent of every run gets the same one.
    """
    schema = cast("JsonObject", kind.model_json_schema())
    return ToolSpec(name, description, {key: _untitled(value) for key, value in schema.items() if key not in _UNTOLD})


def _untitled(value: JsonValue) -> JsonValue:
    """Drop the titles pydantic derives from field names; a field that is itself called title stays."""
    if not isinstance(value, dict):
        return value
    return {key: _untitled(item) for key, item in value.items() if not (key == "title" and isinstance(item, str))}


def _problem(kind: str, field: str, message: str, known: list[str]) -> str:
    if kind == "missing":
        return f"'{field}' is missing"
    if kind != "extra_forbidden":
        return f"'{field}': {message}"
    field = field[:60]
    if near := nearest(field, known, cutoff=0.5):
        return f"unknown {field!a}, did you mean '{near}'?"
    return f"unknown {field!a}, there is {', '.join(known) or 'no argument'}"
