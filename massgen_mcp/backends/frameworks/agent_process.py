"""An agent that talks with an agent CLI, which is a process: how a conversation is told to it, and how it has the
team's tools.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar, cast

import anyio

from massgen_mcp import __version__
from massgen_mcp.backends.base import (
    VOTE,
    AssistantMessage,
    JsonObject,
    JsonValue,
    Message,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from massgen_mcp.backends.wire_values import clean, clean_object
from massgen_mcp.config.access.acp_agents import TEAM
from massgen_mcp.config.access.connections import exempt_this_machine
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.json_rpc import UNKNOWN_METHOD, ConnectionBroken, JsonLines
from massgen_mcp.redaction import Redactor
from massgen_mcp.sandbox import LastWords, PipedProgram, SandboxFailed

CANCEL_SECONDS = 2.0
MAX_DETAIL = 500
BROKEN = (ConnectionBroken, SandboxFailed, OSError)
"""What `CliAgent.fault` makes an error of that a run knows."""
L = TypeVar("L", bound=JsonLines)


class CliAgent:
    """One agent, whose process may live for several conversations. `name`: as people know it."""

    def __init__(self, name: str, redactor: Redactor) -> None:
        self._name, self._redactor = name, redactor
        self._process = AsyncExitStack()
        self._last_words = LastWords()

    async def _run(self, cli: AbstractAsyncContextManager[PipedProgram], speak: Callable[[PipedProgram], L]) -> L:
        running = await self._process.enter_async_context(cli)
        lines = speak(running)
        self._last_words = LastWords()
        words = asyncio.create_task(self._last_words.listen(running.stderr))
        reading = asyncio.create_task(self._read(lines, running, words))
        self._process.push_async_callback(_ended, reading, words)
        return lines

    async def _stop(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._process.aclose()

    async def _read(self, lines: JsonLines, running: PipedProgram, words: asyncio.Task[None]) -> None:
        why = "it ended"
        try:
            await lines.read()
            with anyio.move_on_after(CANCEL_SECONDS):
                await asyncio.shield(words)
        except (ConnectionBroken, BackendError) as error:
            why = str(error)
            await running.end()
        finally:
            lines.end(why)

    # -- what goes wrong ----------------------------------------------------------------------------------------------

    def fault(self, error: Exception) -> BackendError:
        if isinstance(error, SandboxFailed | OSError):
            return self._failed("provider_error", f"cannot be started: {error}")
        return self._failed("provider_error", f"broke off: {error}{self._last_words}", retryable=True)

    def _failed(self, reason: DropReason, what: str, *, retryable: bool = False) -> BackendError:
        """An error whose message holds no secret and has an end."""
        message = self._redactor.text(clean(f"{self._name} {what}"))
        return BackendError(reason, message[:MAX_DETAIL], retryable=retryable)


async def _ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


PREFIX = f"mcp__{TEAM}__"
"""Before the name of each tool of ours, as most CLIs tell the model of it."""
PASSED_ON = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
"""What a CLI needs of the environment; everything else there is none of its business."""


def select_variables(environ: Mapping[str, str], *further: str) -> dict[str, str]:
    """Return the variables that a CLI gets: it asks servers of this machine without the user's proxies."""
    kept = {name: value for name in (*PASSED_ON, *further) if (value := environ.get(name))}
    return {**kept, **exempt_this_machine(environ)}


def render(messages: tuple[Message, ...]) -> str:
    """A conversation as one prompt."""
    parts: list[str] = []
    for message in messages:
        match message:
            case UserMessage():
                parts.append(message.text)
            case AssistantMessage():
                did = [f"You called {call.name} with {call.arguments}" for call in message.tool_calls]
                own = [f"You said: {message.text}"] if message.text.strip() else []
                parts.append("\n".join([*own, *did]))
            case ToolResultMessage():
                parts.append(f"Result of {message.name}{' (an error)' if message.is_error else ''}:\n{message.text}")
    return clean("\n\n".join(part for part in parts if part))


def of_server(message: Mapping[str, Any], tools: Sequence[ToolSpec]) -> JsonObject:
    """What an MCP server with these tools says to a message that is no call of one."""
    reply: JsonObject = {"jsonrpc": "2.0", "id": message.get("id")}
    match message:
        case {"id": _, "method": "initialize", "params": {"protocolVersion": str(version)}}:
            server: JsonObject = {"name": TEAM, "version": __version__}
            able: JsonObject = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
            return {**reply, "result": able}
        case {"id": _, "method": "tools/list"}:
            return {**reply, "result": {"tools": [_tool_schema(tool) for tool in tools]}}
        case {"id": _, "method": "ping"} | {"method": "notifications/initialized"}:
            return {**reply, "result": {}}
        case _:
            return {**reply, "error": {"code": UNKNOWN_METHOD, "message": "not supported"}}


def tool_result(result: ToolResultMessage) -> JsonObject:
    """What came of a call, as an MCP server tells it."""
    return {"content": [{"type": "text", "text": clean(result.text)}], "isError": result.is_error}


def _tool_schema(tool: ToolSpec) -> JsonObject:
    """As it stays for a whole conversation: what can be chosen on a ballot changes, and is told in words."""
    parameters = clean_object(tool.parameters)
    if tool.name == VOTE:
        parameters = cast("JsonObject", _without_choices(parameters))
    return {"name": tool.name, "description": clean(tool.description), "inputSchema": {"type": "object", **parameters}}


def _without_choices(schema: JsonValue) -> JsonValue:
    match schema:
        case dict():
            return {name: _without_choices(value) for name, value in schema.items() if name != "enum"}
        case list():
            return [_without_choices(value) for value in schema]
        case _:
            return schema
