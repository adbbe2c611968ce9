"""Where the MCP servers of a run's agents run on this machine, and which of them cannot. Starts none."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import assert_never

from massgen_mcp.config.models.config import Config, HttpMcpServer, McpServer, StdioServer
from massgen_mcp.sandbox import SandboxChoice

_ASKS_FOR_REAL_PATHS = "server-filesystem"
"""Of the protocol's authors: it serves no file whose real path it is not told."""


def unusable(server: StdioServer, choice: SandboxChoice) -> str | None:
    """Why the server cannot be started here, in words; None if it may be."""
    if not shutil.which(server.command):
        return f"there is no such program: {server.command}"
    if not server.sandbox:
        return None
    if choice.level is None:
        return f"{choice.why}; or set `sandbox: false` for this server"
    if choice.has_no_real_paths and any(_ASKS_FOR_REAL_PATHS in Path(argument).parts for argument in server.args):
        message = f"it needs the real paths of its files, and {choice.level} tells no program of any"
        return f"{message}; install bubblewrap, or set `sandbox: false` for this server, with `.` as its directory"
    return None


def server_places(config: Config, choices: Mapping[tuple[str, ...], SandboxChoice]) -> tuple[str, ...]:
    """Each server of each agent with where it runs, or why it cannot be started."""
    return tuple(
        f"{name} of {agent.id} ({_where(server, choices)})"
        for agent in config.agents
        for name, server in agent.mcp_servers.items()
    )


def _where(server: McpServer, choices: Mapping[tuple[str, ...], SandboxChoice]) -> str:
    match server:
        case HttpMcpServer():
            return "over HTTP"
        case StdioServer():
            choice = choices.get(server.network, SandboxChoice(None))
            if why := unusable(server, choice):
                return f"not started: {why}"
            return f"in {choice.level}" if server.sandbox else "outside the sandbox"
        case _:
            assert_never(server)
