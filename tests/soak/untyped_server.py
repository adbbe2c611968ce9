"""Known-bad twin of the server: one tool lets a failure through as the SDK tells it."""

from typing import Any

from anyio.abc import TaskGroup
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, InputRequiredResult

from massgen_mcp.cli.massgen_mcp.main import main
from massgen_mcp.server.app import MassgenServer

TOOL = "get_result"
guarded = MassgenServer.call_tool


async def call_tool(
    self: MassgenServer, name: str, arguments: dict[str, Any], context: Context[TaskGroup, Any] | None = None
) -> CallToolResult | InputRequiredResult:
    if name == TOOL:
        return await MCPServer.call_tool(self, name, arguments, context)
    return await guarded(self, name, arguments, context)


if __name__ == "__main__":
    MassgenServer.call_tool = call_tool
    main()
