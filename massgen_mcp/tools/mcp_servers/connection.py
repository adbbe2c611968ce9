"""One connection to one server, from its start to its end. The only module that talks through the SDK's client."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import assert_never

import anyio
import httpx2
import mcp_types
from mcp import Client, MCPError
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client

from massgen_mcp import __version__
from massgen_mcp.backends.base import JsonObject
from massgen_mcp.backends.http import CappedStream
from massgen_mcp.config.access.connections import open_client
from massgen_mcp.config.models.config import HttpMcpServer, McpServer, StdioServer
from massgen_mcp.mcp_streams import TransportStreams
from massgen_mcp.sandbox import LastWords, LevelName, PipedProgram, Policy, bare, sandboxed
from massgen_mcp.tools.mcp_servers.framing import MAX_MESSAGE_BYTES, framed, mended

MAX_PAGES = 20
MAX_TOOLS = 100
END_SECONDS = 2.0
_SDK_LOG = logging.getLogger("mcp.client")
_SDK_LOG.addHandler(logging.NullHandler())
_SDK_LOG.propagate = False  # what is wrong with a server is told to its agents and in the run's log, not on a terminal
_SDK_CLIENT = mcp_types.Implementation(name="massgen-mcp", version=__version__)


class CallFailed(Exception):
    """A call has no result; the message says why."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How a server is reached: its config, and the values of its environment or headers."""

    server: McpServer
    values: Mapping[str, str]
    policy: Policy | None
    """What it may see and change. None for one that is not started here."""
    level: LevelName | None
    """None: not in a sandbox."""


class Connection:
    """Open it with `connected`. `lost` is set as soon as nothing more can come."""

    def __init__(self, client: Client, lost: anyio.Event, session: "HttpSession") -> None:
        self._client = client
        self.lost = lost
        self._session = session
        self.tools: tuple[mcp_types.Tool, ...] = ()
        self.stale = False
        """Its tools may be other ones by now."""

    async def list_tools(self) -> None:
        """Raises `MCPError`, and whatever else the SDK raises for what it cannot read."""
        self.stale = False
        found: list[mcp_types.Tool] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._client.session.list_tools(params=mcp_types.PaginatedRequestParams(cursor=cursor))
            found += page.tools
            cursor = page.next_cursor
            if cursor is None or len(found) >= MAX_TOOLS:
                break
        self.tools = tuple(found[:MAX_TOOLS])

    async def call(self, name: str, arguments: JsonObject) -> mcp_types.CallToolResult:
        """Raises `CallFailed`. The result is not held against the schema that the server gave for it: no check that can
        be made to hang is worth it for a text that a model reads.
        """
        params = mcp_types.CallToolRequestParams(name=name, arguments=dict(arguments))
        request = mcp_types.CallToolRequest(params=params)
        try:
            result = await self._client.session.send_request(request, mcp_types.CallToolResult)
        except MCPError as error:
            self.stale = True
            if error.error.code == mcp_types.CONNECTION_CLOSED or self._session.is_over:
                self.lost.set()
            raise CallFailed(error.error.message[:2000]) from None
        except Exception as error:
            self.stale = True
            raise CallFailed(f"its reply cannot be read ({type(error).__name__})") from error
        self.stale = self.stale or bool(result.is_error)
        return result


@asynccontextmanager
async def connected(launch: Launch, on_end: Callable[[str], None]) -> AsyncGenerator[Connection]:
    """Start or reach the server and agree on a protocol. `on_end` is told why it ended, when it ends by itself.

    Raises `SandboxFailed`, `OSError`, and whatever the SDK raises for a server that does not speak MCP.
    """
    lost = anyio.Event()

    def ended(why: str) -> None:
        on_end(why)
        lost.set()

    async def heed(message: object) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification) and connection is not None:
            connection.stale = True

    connection: Connection | None = None
    session = HttpSession()
    client = Client(_streams(launch, ended, session), client_info=_SDK_CLIENT, message_handler=heed, cache=None)
    async with client:
        connection = Connection(client, lost, session)
        yield connection


@asynccontextmanager
async def _streams(
    launch: Launch, ended: Callable[[str], None], session: "HttpSession"
) -> AsyncGenerator[TransportStreams]:
    server = launch.server
    match server:
        case HttpMcpServer():
            http = over_http(server.url, launch.values, server.call_seconds, session)
            async with http as raw, mended(raw) as streams:
                yield streams
        case StdioServer():
            if launch.policy is None:
                raise ValueError("a server that is started here needs a policy")
            command, place = [server.command, *server.args], launch.policy.workspace
            started = (
                bare(command, place, {**get_default_environment(), **launch.values}, patience=END_SECONDS)
                if launch.level is None
                else sandboxed(command, launch.policy, launch.level)
            )
            async with started as program, _piped(program, ended) as raw, mended(raw) as streams:
                yield streams
        case _:
            assert_never(server)


@asynccontextmanager
async def _piped(program: PipedProgram, ended: Callable[[str], None]) -> AsyncGenerator[TransportStreams]:
    words = LastWords()

    async def tell(why: str) -> None:
        """What `framed` calls when nothing more can come."""
        how = "it closed its output"
        with anyio.move_on_after(0 if why else END_SECONDS):
            how = await program.over()
        ended(why or f"it ended ({how}){words}")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(words.listen, program.stderr)
        async with framed(program.stdin, program.stdout, tell) as streams:
            yield streams
        tasks.cancel_scope.cancel()


# -- streamable HTTP to a server that is not trusted: replies are bounded, whatever their headers say -----------------


MAX_RESPONSE_BYTES = 4 * MAX_MESSAGE_BYTES
"""Of one response; it may be a stream of several messages."""
CONNECT_SECONDS = 30.0


class HttpSession:
    """Whether a server still knows the session that it gave; it says no by 404, whatever stands in the body."""

    def __init__(self) -> None:
        self.is_over = False

    async def watch(self, response: httpx2.Response) -> None:
        if response.status_code == 404 and response.request.method == "POST" and _SESSION in response.request.headers:
            self.is_over = True


_SESSION = "mcp-session-id"


@asynccontextmanager
async def over_http(
    url: str, headers: Mapping[str, str], read_seconds: float, session: HttpSession
) -> AsyncGenerator[TransportStreams]:
    """The streams that the SDK's client speaks over. Redirects are followed within the server's origin only."""
    client = open_client(
        url,
        own_server=True,
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(CONNECT_SECONDS, read=read_seconds),
        hooks={"response": [_guard, session.watch]},
    )
    async with client, streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams:
        yield streams


async def _guard(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.RemoteProtocolError("the server compresses its replies, which was not asked for")
    if isinstance(response.stream, httpx2.AsyncByteStream):
        too_much = httpx2.RemoteProtocolError(f"the reply is larger than {MAX_RESPONSE_BYTES} bytes; ask for less")
        response.stream = CappedStream(response.stream, MAX_RESPONSE_BYTES, too_much)
