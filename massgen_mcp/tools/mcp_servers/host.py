"""The MCP servers of one run: each is started when the run begins, again when it was lost, and ended with the run."""

import os
import shutil
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import anyio.to_thread
from anyio.abc import TaskGroup

from massgen_mcp.backends.base import JsonObject
from massgen_mcp.config.environment import filled
from massgen_mcp.config.models.config import HttpMcpServer, McpServer, StdioServer
from massgen_mcp.home import PARENT_VARIABLE, enclosing_run
from massgen_mcp.request.runnable import unusable
from massgen_mcp.sandbox import Policy, ResourceLimits, SandboxChoice, find_package
from massgen_mcp.threads import imported

if TYPE_CHECKING:
    import mcp_types

    from massgen_mcp.tools.mcp_servers.connection import Connection, Launch


MAX_STARTS = 4
MAX_LISTINGS = 20
"""How often the tools of one connection are asked for, however often they change."""
LIST_SECONDS = 5.0
_CONNECTION = "massgen_mcp.tools.mcp_servers.connection"
DAYS = 30
BOUNDS = ResourceLimits(seconds=DAYS * 86_400)


ServerReport = Callable[[str, tuple[str, ...], str], None]
"""Is told of every start of a server that failed and every loss: its name, the agents that have it, and why."""


def list_spellings(server: str, tool: str) -> tuple[str, ...]:
    """Return the names by which a config may call a tool of a server: its own, ours, and MassGen's."""
    return tool, f"{server}__{tool}", f"mcp__{server}__{tool}"


class ServerFailed(Exception):
    """The server has no result for a call; the message says why, for the model."""


@dataclass(frozen=True, slots=True)
class ServerDirectories:
    """Where a server that is started here lives: its workspace, and a directory for temporary files."""

    workspace: Path
    scratch: Path


class Server:
    """One server, whoever calls it. `name` is the config's, `agents` are those that have it."""

    def __init__(
        self, name: str, config: McpServer, place: ServerDirectories, environ: Mapping[str, str], choice: SandboxChoice
    ) -> None:
        self.name = name
        self.agents: tuple[str, ...] = ()
        self.config = config
        self._place = place
        self._environ = environ
        self._choice = choice
        self._connection: Connection | None = None
        self.tools: tuple[mcp_types.Tool, ...] = ()
        """What it last said that it offers."""
        self._why = "it has not started yet"
        """Why it is not up."""
        self._ended = ""
        """Why it ended by itself, as far as it has."""
        self._announced = False
        """That it was lost, or did not start."""
        self._listings = 0
        self._starts = 0
        self._patience_ends: float | None = None
        self._wanted = anyio.Event()
        self._settled = anyio.Event()
        """It is up, or this start has failed."""

    @property
    def up(self) -> bool:
        return self._connection is not None

    async def serve(self, report: ServerReport) -> None:
        """Keep it going until cancelled. `report` is told of every start that failed and every loss."""
        self._wanted.set()
        while self._starts < MAX_STARTS:
            await self._wanted.wait()
            self._wanted, self._starts, self._announced = anyio.Event(), self._starts + 1, False
            try:
                await imported(_CONNECTION)
                await self._serve_once(report)
            except Exception as error:  # noqa: BLE001 - whatever a server makes the SDK raise is that server's alone
                self._why = self._ended or _in_words(error)
            if self._connection is None:
                self._settled.set()  # otherwise it was up, and whoever calls it again waits for the next start
            self._connection = None
            self._report_loss(report)
        self._why = f"{self._why}; it was started {MAX_STARTS} times and is not started again"

    @property
    def lacks(self) -> str | None:
        """What of it the config asks for and is not there; None: nothing."""
        if not self.up:
            return self._why
        absent = self.find_unknown(self.config.allowed_tools or ())
        return self._explain_absent(absent) if absent else None

    def find_unknown(self, names: Iterable[str]) -> list[str]:
        """List those of `names` that none of its tools has, in any spelling."""
        known = {spelling for tool in self.tools for spelling in list_spellings(self.name, tool.name)}
        return [name for name in names if name not in known]

    def _explain_absent(self, names: Iterable[str]) -> str:
        known = ", ".join(sorted(tool.name for tool in self.tools)) or "none"
        return f"it has no tool named {', '.join(names)}; it has {known}"

    async def settled(self) -> None:
        """Until it is up or its start has failed, at most as long as the config says from when it was wanted."""
        if self._patience_ends is None:
            self._patience_ends = anyio.current_time() + self.config.start_seconds
        with anyio.CancelScope(deadline=self._patience_ends):
            await self._settled.wait()

    async def refresh(self) -> None:
        """Ask for its tools again if they may have changed."""
        connection = self._connection
        if connection is None or connection.lost.is_set() or not connection.stale:
            return
        if self._listings >= MAX_LISTINGS:
            return
        self._listings += 1
        with suppress(Exception):  # as in `serve`; it goes on with the tools that are known
            with anyio.fail_after(LIST_SECONDS):
                await connection.list_tools()
            self.tools = connection.tools

    async def call(self, tool: str, arguments: JsonObject) -> "mcp_types.CallToolResult":
        """Raises `ServerFailed`."""
        connection = await self._reached()
        from massgen_mcp.tools.mcp_servers.connection import CallFailed

        seconds = self.config.call_seconds
        with anyio.move_on_after(seconds):
            try:
                return await connection.call(tool, arguments)
            except CallFailed as error:
                if connection.lost.is_set():
                    self._why = self._ended or str(error)
                    raise ServerFailed(f"The MCP server {self.name} was lost: {self._why}") from None
                raise ServerFailed(f"The MCP server {self.name} refused: {error}") from None
        if isinstance(self.config, StdioServer):
            self._why = f"it did not answer within {seconds:g} s"
            connection.lost.set()  # what hangs once hangs again; the next call gets a new one
        raise ServerFailed(f"The MCP server {self.name} did not answer within {seconds:g} s (call_seconds).")

    async def _reached(self) -> "Connection":
        if self._connection is None or self._connection.lost.is_set():
            if self._starts >= MAX_STARTS:
                raise ServerFailed(f"The MCP server {self.name} is not there: {self._why}.")
            if self._settled.is_set():
                self._settled, self._patience_ends = anyio.Event(), None
                self._wanted.set()
            await self.settled()
        if self._connection is None:
            raise ServerFailed(f"The MCP server {self.name} is not there: {self._why}.")
        return self._connection

    def _report_loss(self, report: ServerReport) -> None:
        """At once when it is lost, so that who calls it learns of it later than the record."""
        if not self._announced:
            self._announced = True
            report(self.name, self.agents, self._why)

    async def _serve_once(self, report: ServerReport) -> None:
        from massgen_mcp.tools.mcp_servers.connection import connected

        launch = await anyio.to_thread.run_sync(self._launch)

        def ended(why: str) -> None:
            self._why = self._ended = why
            self._report_loss(report)

        self._ended = ""
        async with connected(launch, ended) as connection:
            await connection.list_tools()
            self.tools, self._connection = connection.tools, connection
            self._settled.set()
            if absent := self.lacks:
                report(self.name, self.agents, absent)
            if unknown := self.find_unknown(self.config.exclude_tools):
                report(self.name, self.agents, f"exclude_tools: {self._explain_absent(unknown)}")
            await connection.lost.wait()

    def _launch(self) -> "Launch":
        from massgen_mcp.tools.mcp_servers.connection import Launch

        server = self.config
        values = server.headers if isinstance(server, HttpMcpServer) else server.env
        try:
            whole = filled(values, self._environ)
        except KeyError as missing:
            raise _Unusable(f"the variable {missing.args[0]} is not set") from None
        if isinstance(server, HttpMcpServer):
            return Launch(server, whole, None, None)
        if why := unusable(server, self._choice):
            raise _Unusable(why)
        if not server.sandbox and (run_id := enclosing_run(self._environ)):
            whole = {PARENT_VARIABLE: run_id, **whole}  # a sandbox hides the runs from those in it
        for directory in (self._place.workspace, self._place.scratch):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        policy = Policy(
            workspace=self._place.workspace,
            scratch=self._place.scratch,
            network=server.network,
            environ=whole,
            toolchains=(*own_files(server), *(Path(path) for path in server.readable)),
            bounds=BOUNDS,
        )
        return Launch(server, whole, policy, self._choice.level if server.sandbox else None)


class _Unusable(Exception):
    pass


class ServerHost:
    """Where the servers of a run live: they end with the block that it is opened in."""

    def __init__(self, tasks: TaskGroup, environ: Mapping[str, str], report: ServerReport) -> None:
        self._tasks = tasks
        self._environ = environ
        self._report = report
        self._shared: dict[tuple[str, str], Server] = {}

    @classmethod
    @asynccontextmanager
    async def open(cls, environ: Mapping[str, str], report: ServerReport) -> AsyncGenerator["ServerHost"]:
        async with anyio.create_task_group() as tasks:
            try:
                yield cls(tasks, environ, report)
            finally:
                tasks.cancel_scope.cancel()

    def start(
        self,
        name: str,
        agent: str,
        config: McpServer,
        own: ServerDirectories,
        common: ServerDirectories,
        choice: SandboxChoice,
    ) -> Server:
        """The server of that name for one agent: one of its own, or the one of all who say the same of it."""
        key = (name, config.model_dump_json())
        if config.shared and key in self._shared:
            server = self._shared[key]
            server.agents = (*server.agents, agent)
            return server
        server = Server(name, config, common if config.shared else own, self._environ, choice)
        server.agents = (agent,)
        if config.shared:
            self._shared[key] = server
        self._tasks.start_soon(server.serve, self._report)
        return server


def _in_words(error: BaseException) -> str:
    """The first cause of what may be a group of errors."""
    if isinstance(error, BaseExceptionGroup):
        causes = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return _in_words(causes[0])
    match error:
        case FileNotFoundError():
            return f"there is no such program: {error.filename}"
        case TimeoutError():
            return "it did not answer in time"
        case _:
            return str(error)[:2000] or type(error).__name__


# ---------------------------------------------------------------------------------------------------------------------
# Which files a server's own program consists of, so that it can be read in the sandbox. Reads the file system.


_SCRIPTS = frozenset({".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".jar"})

_MAX_LINKS = 40
"""As many as the kernel follows."""


def own_files(server: StdioServer) -> tuple[Path, ...]:
    """The command and the scripts that its arguments name; of one in a virtual environment what belongs to that, of one
    in `node_modules` the packages there.
    """
    return tuple(dict.fromkeys(part for path in _script_paths(server) for part in find_package(path)))


def _script_paths(server: StdioServer) -> Iterator[Path]:
    if found := shutil.which(server.command):
        yield from _led_to(Path(found).absolute())
    for argument in server.args:
        path = Path(argument)
        if path.is_absolute() and path.suffix in _SCRIPTS and path.is_file():
            yield path


def _led_to(path: Path) -> Iterator[Path]:
    """The path and, while it is a link, where that leads."""
    for _ in range(_MAX_LINKS):
        yield path
        if not path.is_symlink():
            return
        path = Path(os.path.normpath(path.parent / path.readlink()))
