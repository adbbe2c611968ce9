"""How the Claude Code CLI is talked to: JSON lines on its standard input and output, as its SDK does it.

Beside the messages of the conversation there are requests in both directions. We ask it once, to begin; it asks us
before it runs a tool, and passes on what its MCP client says to our server, which only lists its tools.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from massgen_mcp import __version__
from massgen_mcp.backends.base import JsonObject, ToolSpec
from massgen_mcp.backends.frameworks.claude_code_process import CliBroken, CliProcess
from massgen_mcp.backends.frameworks.claude_code_step import SERVER
from massgen_mcp.backends.wiretext import clean, clean_object

BeforeTool = Callable[[Mapping[str, Any], str | None], JsonObject]
"""What the CLI is to do about a call of a tool, by what it says of it and the call's id."""

_UNKNOWN_METHOD = -32601


async def conversation(
    process: CliProcess, prompt: str, tools: Sequence[ToolSpec], before_tool: BeforeTool
) -> AsyncGenerator[dict[str, Any]]:
    """Ask what `prompt` says; yields the messages of the conversation. Raises `CliBroken`."""
    hooks = {"PreToolUse": [{"matcher": None, "hookCallbackIds": ["before_tool"]}]}
    begin = {"subtype": "initialize", "hooks": hooks}
    await process.write({"type": "control_request", "request_id": "begin", "request": begin})
    async with aclosing(process.messages()) as messages:
        async for message in messages:
            match message:
                case {"type": "control_response", "response": {"subtype": "error"} as refused}:
                    raise CliBroken(f"the CLI does not begin: {refused.get('error')}")
                case {"type": "control_response"}:
                    await process.write(_prompt(prompt))
                case {"type": "control_request", "request_id": str(request_id), "request": {} as request}:
                    await process.write(_response(request_id, _answer(request, tools, before_tool)))
                case {"type": "control_cancel_request"}:
                    pass
                case _:
                    yield message


def _prompt(text: str) -> dict[str, Any]:
    """The CLI is to expand nothing in it: no `@path`, no `/command`."""
    message = {"role": "user", "content": text}
    return {"type": "user", "message": message, "parent_tool_use_id": None, "client_composed": True}


def _response(request_id: str, answer: JsonObject | None) -> dict[str, Any]:
    response: dict[str, Any] = {"subtype": "error", "request_id": request_id, "error": "not supported"}
    if answer is not None:
        response = {"subtype": "success", "request_id": request_id, "response": answer}
    return {"type": "control_response", "response": response}


def _answer(request: Mapping[str, Any], tools: Sequence[ToolSpec], before_tool: BeforeTool) -> JsonObject | None:
    """None: it asks what we do not know."""
    match request:
        case {"subtype": "hook_callback", "input": {} as asked}:
            return before_tool(asked, request.get("tool_use_id"))
        case {"subtype": "mcp_message", "message": {} as message}:
            return {"mcp_response": _of_server(message, tools)}
        case _:
            return None


def _of_server(message: Mapping[str, Any], tools: Sequence[ToolSpec]) -> JsonObject:
    reply: JsonObject = {"jsonrpc": "2.0", "id": message.get("id")}
    match message:
        case {"id": _, "method": "initialize", "params": {"protocolVersion": str(version)}}:
            server: JsonObject = {"name": SERVER, "version": __version__}
            able: JsonObject = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
            return {**reply, "result": able}
        case {"id": _, "method": "tools/list"}:
            return {**reply, "result": {"tools": [_tool(tool) for tool in tools]}}
        case {"id": _, "method": "ping"} | {"method": "notifications/initialized"}:
            return {**reply, "result": {}}
        case _:  # no tool is called here: a call is taken over before
            return {**reply, "error": {"code": _UNKNOWN_METHOD, "message": "not supported"}}


def _tool(tool: ToolSpec) -> JsonObject:
    parameters = clean_object(tool.parameters)
    return {"name": tool.name, "description": clean(tool.description), "inputSchema": {"type": "object", **parameters}}
