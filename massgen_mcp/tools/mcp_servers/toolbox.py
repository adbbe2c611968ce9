"""What one agent has of its MCP servers: which of their tools, under which names."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import anyio.to_thread

from massgen_mcp.backends.base import JsonObject, JsonValue, ToolSpec
from massgen_mcp.json_rpc import fields
from massgen_mcp.tools.base import Tool, ToolResult, well_formed
from massgen_mcp.tools.mcp_servers.host import Server, ServerFailed, list_spellings
from massgen_mcp.tools.mcp_servers.results import ToolResults

if TYPE_CHECKING:
    import mcp_types


MAX_SHOWN = 200
MAX_SPECS_CHARACTERS = 60_000
"""Of all tools of one server together: what a model reads before every step."""


@dataclass(slots=True)
class Toolbox:
    """The tools that are there now; a server that is slow adds its own later.

    A name, once given, stays with its tool. One that is taken, by a tool of ours or of another server, gets the
    server's name before it.
    """

    servers: Sequence[Server]
    results: ToolResults
    taken: frozenset[str]
    """Names of tools that are not the servers'."""
    allowed: frozenset[str] | None = None
    excluded: frozenset[str] = frozenset()
    report_unknown: Callable[[Sequence[str]], None] = lambda _: None
    """Told once of the names in both lists that no tool has."""
    _reported: set[str] = field(default_factory=set[str])
    _names: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    _listings: list[object] = field(default_factory=list[object])
    """What the servers said when `_tools` were made of it."""
    _tools: tuple[Tool, ...] = ()

    async def ready(self) -> None:
        """Until every server is up or has failed, each at most as long as its config says."""
        async with anyio.create_task_group() as tasks:
            for server in self.servers:
                tasks.start_soon(server.settled)
        if unknown := [name for name in self.find_unknown_names() if name not in self._reported]:
            self._reported.update(unknown)
            self.report_unknown(unknown)

    async def lacking(self) -> str | None:
        """What of the servers that are required is not there, in words; None: nothing."""
        required = [server for server in self.servers if server.config.required]
        async with anyio.create_task_group() as tasks:
            for server in required:
                tasks.start_soon(server.settled)
        lacks = (f"the MCP server {server.name} is required: {why}" for server in required if (why := server.lacks))
        return next(lacks, None)

    async def refresh(self) -> None:
        """Take over what servers have changed."""
        for server in self.servers:
            await server.refresh()

    def tools(self) -> tuple[Tool, ...]:
        listings: list[object] = [server.tools for server in self.servers]
        if len(listings) != len(self._listings) or any(
            new is not old for new, old in zip(listings, self._listings, strict=True)
        ):
            self._listings, self._tools = listings, tuple(self._made())
        return self._tools

    def _made(self) -> Iterator[Tool]:
        offered = [
            (server, tool) for server in self.servers for tool in server.tools if self._offers(server, tool.name)
        ]
        self._assign_names([(server.name, tool.name) for server, tool in offered])
        room = {server.name: MAX_SPECS_CHARACTERS for server in self.servers}
        for server, found in offered:
            tool = self._server_tool(server, found)
            room[server.name] -= len(json.dumps([tool.spec.description, tool.spec.parameters]))
            if room[server.name] >= 0:
                yield tool

    def missing(self) -> list[str]:
        """The names of the servers that are not there. Why is their own words, and not for a system message."""
        return [server.name for server in self.servers if not server.up]

    def _offers(self, server: Server, tool: str) -> bool:
        names = {*list_spellings(server.name, tool)}
        lists = (server.config.allowed_tools, self.allowed)
        allowed = all(names.intersection(those) for those in lists if those is not None)
        return allowed and not names.intersection((*server.config.exclude_tools, *self.excluded))

    def find_unknown_names(self) -> list[str]:
        """List the names in the agent's lists that no tool has; none as long as a server is not up."""
        if not all(server.up for server in self.servers):
            return []
        left = [name for name in (*sorted(self.allowed or ()), *sorted(self.excluded)) if name not in self.taken]
        for server in self.servers:
            left = server.find_unknown(left)
        return left

    def _assign_names(self, offered: Iterable[tuple[str, str]]) -> None:
        new = [key for key in dict.fromkeys(offered) if key not in self._names]
        wanted = [plain_name(tool) for _, tool in new]
        for (server, tool), name in zip(new, wanted, strict=True):
            taken = self.taken.union(self._names.values())
            collides = name in taken or wanted.count(name) > 1
            self._names[server, tool] = _free(plain_name(f"{server}__{tool}"), taken) if collides else name

    def _server_tool(self, server: Server, tool: "mcp_types.Tool") -> "ServerTool":
        name = self._names[server.name, tool.name]
        about = plain_text(tool.description or tool.title or "", MAX_DESCRIPTION)
        spec = ToolSpec(name, about or f"{tool.name[:MAX_NAME]} of {server.name}", plain_schema(tool.input_schema))
        reads_only = tool.annotations is not None and tool.annotations.read_only_hint is True
        kind = ServerTool if reads_only else ActingTool
        return kind(server, tool.name, spec, self.results, side_effects=not reads_only)


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of a server that says it only reads."""

    server: Server
    name: str
    """The server's own name for it."""
    spec: ToolSpec
    results: ToolResults
    side_effects: bool
    keeps_state: bool = False

    async def run(self, arguments: JsonObject) -> ToolResult:
        try:
            result = await self.server.call(self.name, arguments)
        except ServerFailed as failed:
            return ToolResult(self.results.clean(str(failed)), is_error=True, foreign=True)
        return await anyio.to_thread.run_sync(self.results.as_tool_result, self.spec.name, result)


@dataclass(frozen=True, slots=True)
class ActingTool(ServerTool):
    """A tool that may change something: a call that was begun is not made twice (see `RunsOnce`)."""

    def shown(self, arguments: JsonObject) -> str:
        return f"{self.server.name}: {', '.join(arguments)}"[:MAX_SHOWN]


def _free(name: str, taken: frozenset[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name[: MAX_NAME - 4]}_{number}"
    return free


# ---------------------------------------------------------------------------------------------------------------------
# What a server says of a tool, made fit for every provider: bounded, and of well-known keywords only. Pure.
# A provider refuses the whole request for one schema that it does not like, so nothing of a server is passed on as it
# is.


MAX_DESCRIPTION = 1000
MAX_SCHEMA_CHARACTERS = 12_000
MAX_DEPTH = 8
MAX_PARTS = 300
"""Schemas within one schema, after references are resolved."""
MAX_VALUES = 100
_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
_NUMBERS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
MAX_NAME = 64


def plain_name(name: str) -> str:
    """The name with what every provider takes in one."""
    return _NOT_IN_NAMES.sub("_", name)[:MAX_NAME] or "tool"


def plain_text(text: str, limit: int) -> str:
    """Text of a server without control characters, at most `limit` characters of it."""
    readable = "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in well_formed(text))
    return readable if len(readable) <= limit else f"{readable[: limit - 1]}…"


def plain_schema(schema: Mapping[str, object]) -> JsonObject:
    """The schema of a tool's arguments, always that of an object; without what would make it too long."""
    for described in (MAX_DESCRIPTION, 0):
        made = _Maker(schema, described).make(schema, 0, ())
        is_of_object = made.get("type") == "object" and isinstance(made.get("properties"), dict)
        if is_of_object and len(json.dumps(made)) <= MAX_SCHEMA_CHARACTERS:
            return made
    return {"type": "object", "properties": {}}


class _Maker:
    def __init__(self, whole: Mapping[str, object], described: int) -> None:
        """`described`: characters of a description."""
        self._whole = whole
        self._described = described
        self._left = MAX_PARTS

    def make(self, schema: object, depth: int, within: tuple[str, ...]) -> JsonObject:
        """The part in plain words; {} for one that cannot be told, which allows everything. `within`: references that
        are being resolved.
        """
        self._left -= 1
        if not isinstance(schema, dict) or depth > MAX_DEPTH or self._left < 0:
            return {}
        part = cast("dict[str, object]", schema)
        reference = part.get("$ref")
        if isinstance(reference, str):
            return {} if reference in within else self.make(self._resolved(reference), depth, (*within, reference))
        made = _scalars(part, self._described)
        if made.get("type") == "object" or "properties" in part:
            made |= self._plain_object(part, depth, within)
        if made.get("type") == "array":
            made["items"] = self.make(part.get("items"), depth + 1, within)
        for key in _ALTERNATIVES:
            options = part.get(key)
            if isinstance(options, list) and options:
                listed = cast("list[object]", options)[:MAX_VALUES]
                made[key] = [self.make(option, depth + 1, within) for option in listed]
        return made

    def _plain_object(self, part: Mapping[str, object], depth: int, within: tuple[str, ...]) -> JsonObject:
        given = fields(part.get("properties"))
        names = [name for name in given if _fit_for_property(name)][:MAX_VALUES]
        properties: JsonObject = {name: self.make(given[name], depth + 1, within) for name in names}
        made: JsonObject = {"type": "object", "properties": properties}
        required = part.get("required")
        if isinstance(required, list):
            wanted = [name for name in cast("list[object]", required) if isinstance(name, str) and name in properties]
            made["required"] = [*dict.fromkeys(wanted)]
        more = part.get("additionalProperties")
        if isinstance(more, bool):
            made["additionalProperties"] = more
        return made

    def _resolved(self, reference: str) -> object:
        """What a reference within this schema names; nothing else is looked up."""
        if not reference.startswith("#/"):
            return None
        here: object = self._whole
        for step in reference[2:].split("/")[:MAX_DEPTH]:
            here = fields(here).get(step)
        return here


def _scalars(part: Mapping[str, object], described: int) -> JsonObject:
    made: JsonObject = {}
    kind = part.get("type")
    if isinstance(kind, str) and kind in _TYPES:
        made["type"] = kind
    elif isinstance(kind, list):
        kinds = [each for each in cast("list[object]", kind) if isinstance(each, str) and each in _TYPES]
        made["type"] = next((each for each in kinds if each != "null"), "null") if kinds else "string"
    if described and isinstance(text := part.get("description"), str):
        made["description"] = plain_text(text, described)
    values = part.get("enum")
    if isinstance(values, list):
        kept = [value for value in cast("list[object]", values) if isinstance(value, str | int | float | bool)]
        if kept and len(kept) == len(cast("list[object]", values)) <= MAX_VALUES:
            made["enum"] = cast("list[JsonValue]", [well_formed(v) if isinstance(v, str) else v for v in kept])
    for key in _NUMBERS:
        number = part.get(key)
        if isinstance(number, int) and not isinstance(number, bool) and abs(number) < 10**12:
            made[key] = number
    return made


def _fit_for_property(name: str) -> bool:
    return 0 < len(name) <= MAX_NAME and name.isprintable() and well_formed(name) == name
