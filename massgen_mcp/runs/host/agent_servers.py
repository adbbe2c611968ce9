"""The MCP servers of a run's agents: opened with the run, each in the sandbox that it can have on this machine."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from massgen_mcp.config.models.config import AgentSettings, Config, StdioServer
from massgen_mcp.events.run import ServerLost
from massgen_mcp.redaction import Redactor
from massgen_mcp.request.runnable import sandboxes_of_servers
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import EventWriter, RunFiles
from massgen_mcp.runs.host.publishing import RunLog
from massgen_mcp.sandbox import SandboxChoice
from massgen_mcp.tools.mcp_servers import ServerDirectories, ServerHost, ServerReport, Toolbox
from massgen_mcp.tools.mcp_servers.results import ToolResults
from massgen_mcp.workspace.directory import Workspace

COMMON = "shared"
"""Beside the agents' workspaces: where a server that is shared has its own."""
MAX_LOSS = 2000
"""Characters of why an MCP server was lost."""


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """What the agents of a run need to have MCP servers."""

    host: ServerHost
    choices: Mapping[tuple[str, ...], SandboxChoice]
    """The sandbox, by what a server may connect to."""
    redactor: Redactor
    report: ServerReport

    def toolbox(
        self, run: RunFiles, name: str, agent: AgentSettings, workspace: Workspace | None, taken: frozenset[str]
    ) -> Toolbox | None:
        """The servers of one agent, which begin to start now. None for an agent without any."""
        if not agent.mcp_servers:
            return None
        own = ServerDirectories(run.workspace_of(name), run.scratch_of(name))
        servers = [
            self.host.start(
                server_name,
                name,
                server,
                own,
                ServerDirectories(
                    run.workspace_of(f".{COMMON}-{server_name}"), run.scratch_of(f"{COMMON}-{server_name}")
                ),
                self.choices.get(server.network if isinstance(server, StdioServer) else (), SandboxChoice(None)),
            )
            for server_name, server in agent.mcp_servers.items()
        ]
        allowed = None if agent.allowed_tools is None else frozenset(agent.allowed_tools)
        results = ToolResults(workspace, self.redactor)

        def report_unknown(names: Sequence[str]) -> None:
            here = ", ".join(server.name for server in servers)
            why = f"tool not found: {', '.join(names)} (in the agent's allowed_tools or exclude_tools)"
            self.report(here, (name,), why)

        return Toolbox(servers, results, taken, allowed, frozenset(agent.exclude_tools), report_unknown)


async def opened_servers(
    config: Config,
    environ: Mapping[str, str],
    redactor: Redactor,
    report: ServerReport,
    cleanup: AsyncExitStack,
) -> ServerAccess | None:
    """None where no agent has servers. `report` is told of servers that could not be started or were lost."""
    if not any(agent.mcp_servers for agent in config.agents):
        return None
    choices = await sandboxes_of_servers(config, environ)
    host = await cleanup.enter_async_context(ServerHost.open(environ, report))
    return ServerAccess(host, choices, redactor, report)


class ServerLosses:
    """The MCP servers that could not be started or were lost. They start before the run's first event is written."""

    def __init__(self, log: RunLog) -> None:
        self._log = log
        self._events: list[ServerLost] = []
        self._written: tuple[EventWriter, RunState] | None = None

    def heard(self, server: str, agents: tuple[str, ...], why: str) -> None:
        self._log.note(f"MCP server {server}: {why}")
        self._events.append(ServerLost(server=server, agents=agents, message=why[:MAX_LOSS]))
        self._write()

    def record_in(self, journal: EventWriter, state: RunState) -> None:
        """From now on they are a part of the run, as long as it goes on."""
        self._written = journal, state
        self._write()

    def _write(self) -> None:
        if self._written is None:
            return
        journal, state = self._written
        while self._events and state.end is None:
            journal.record(self._events.pop(0))
