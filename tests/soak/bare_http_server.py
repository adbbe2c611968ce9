"""The SDK's server with one tool and nothing else, for a comparison over HTTP. Says its port in its first line."""

import socket

import uvicorn
from mcp.server import MCPServer

server = MCPServer("bare", log_level="ERROR")


@server.tool()
async def get_status(run_id: str) -> dict[str, str]:
    """Give back what was asked about."""
    return {"run_id": run_id}


def main() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        app = server.streamable_http_app(stateless_http=True)
        uvicorn.Server(uvicorn.Config(app, log_level="error", backlog=2048)).run(sockets=[listener])


if __name__ == "__main__":
    main()
