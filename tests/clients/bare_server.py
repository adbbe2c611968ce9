"""The least that the SDK serves: one tool. What a start costs beyond this is ours."""

from mcp.server import MCPServer

server = MCPServer("bare")


@server.tool()
def ping() -> str:
    """Answer."""
    return "pong"


if __name__ == "__main__":
    server.run()
