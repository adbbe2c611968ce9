"""What one agent has of its MCP servers: which of their tools, under which names."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from massgen_mcp.backends.base import JsonObject, ToolSpec
from massgen_mcp.tools.base import Tool, ToolResult
from massgen_mcp.tools.mcp_servers.host import Server, ServerFailed
from massgen_mcp.tools.mcp_servers.results import ToolResults
from massgen_mcp.tools.mcp_servers.schemas import MAX_DESCRIPTION, MAX_NAME, plain_name, plain_schema, plain_text

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
    _names: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    _listings: list[object] = field(default_factory=list[object])
    """What the servers said when `_tools` were made of it."""
    _tools: tuple[Tool, ...] = ()

    async def ready(self) -> None:
        """Until every server is up or has failed, each at most as long as its config says."""
        async with anyio.create_task_group() as tasks:
            for server in self.servers:
                tasks.start_soon(server.settled)

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
        self._name([(server.name, tool.name) for server, tool in offered])
        room = {server.name: MAX_SPECS_CHARACTERS for server in self.servers}
        for server, found in offered:
            tool = self._tool(server, found)
            room[server.name] -= len(json.dumps([tool.spec.description, tool.spec.parameters]))
            if room[server.name] >= 0:
                yield tool

    def missing(self) -> list[str]:
        """The names of the servers that are not there. Why is their own words, and not for a system message."""
        return [server.name for server in self.servers if not server.up]

    def _offers(self, server: Server, tool: str) -> bool:
        lists = (server.config.allowed_tools, self.allowed)
        allowed = all(tool in names or f"{server.name}__{tool}" in names for names in lists if names is not None)
        excluded = (*server.config.exclude_tools, *self.excluded)
        return allowed and tool not in excluded and f"{server.name}__{tool}" not in excluded

    def _name(self, offered: Iterable[tuple[str, str]]) -> None:
        new = [key for key in dict.fromkeys(offered) if key not in self._names]
        wanted = [plain_name(tool) for _, tool in new]
        for (server, tool), name in zip(new, wanted, strict=True):
            taken = self.taken.union(self._names.values())
            collides = name in taken or wanted.count(name) > 1
            self._names[server, tool] = _free(plain_name(f"{server}__{tool}"), taken) if collides else name

    def _tool(self, server: Server, tool: "mcp_types.Tool") -> "ServerTool":
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
