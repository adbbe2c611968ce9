"""What agent CLIs share that have the team's tools: how a conversation is told to one, and which tools it has.

Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

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
from massgen_mcp.json_rpc import UNKNOWN_METHOD

PREFIX = f"mcp__{TEAM}__"
"""Before the name of each tool of ours, as most CLIs tell the model of it."""
PASSED_ON = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
"""What a CLI needs of the environment; everything else there is none of its business."""


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
            return {**reply, "result": {"tools": [_tool(tool) for tool in tools]}}
        case {"id": _, "method": "ping"} | {"method": "notifications/initialized"}:
            return {**reply, "result": {}}
        case _:
            return {**reply, "error": {"code": UNKNOWN_METHOD, "message": "not supported"}}


def tool_result(result: ToolResultMessage) -> JsonObject:
    """What came of a call, as an MCP server tells it."""
    return {"content": [{"type": "text", "text": clean(result.text)}], "isError": result.is_error}


def _tool(tool: ToolSpec) -> JsonObject:
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
