"""The server with everything that a client finds on it, whatever transport carries it."""

from dataclasses import dataclass

from mcp.types import SetLevelRequestParams

from massgen_mcp.home import Home
from massgen_mcp.redaction import Redactor
from massgen_mcp.runs.service import RunService
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.server.client.log import set_level
from massgen_mcp.server.completion import add_completion
from massgen_mcp.server.listening import ChangeListeners
from massgen_mcp.server.prompts import add_prompts
from massgen_mcp.server.resources import add_resources
from massgen_mcp.server.run_app import add_run_page
from massgen_mcp.server.tasks.runs import RunTasks
from massgen_mcp.server.tools import LookBefore, add_tools, nothing_to_look_at


@dataclass(frozen=True, slots=True)
class BuiltServer:
    server: MassgenServer
    service: RunService
    listening: ChangeListeners

    def stop_waiting(self) -> None:
        """Let every call and every stream that waits end now: the process has to leave."""
        self.service.stop_waiting()
        self.listening.close()


def build_server(
    home: Home,
    service: RunService,
    redactor: Redactor,
    *,
    look_before: LookBefore = nothing_to_look_at,
    answered_early: bool = False,
) -> BuiltServer:
    """`answered_early`: a client may have had its first answers from a snapshot (see `front`)."""
    server = MassgenServer(redactor)
    add_tools(server, service, look_before)
    add_run_page(server, service)
    add_resources(server, service)
    add_prompts(server)
    add_completion(server, service)
    server.tasks.add(RunTasks(server, service, home.limits.results_seconds))
    server.serve_method("logging/setLevel", SetLevelRequestParams, set_level)
    return BuiltServer(server, service, ChangeListeners(server, service, answered_early=answered_early))
