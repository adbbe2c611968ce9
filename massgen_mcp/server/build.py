"""The server with everything that a client finds on it, whatever transport carries it."""

from dataclasses import dataclass

from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
    SetLevelRequestParams,
)

from massgen_mcp.config.examples import list_examples
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import Home
from massgen_mcp.redaction import Redactor
from massgen_mcp.runs.service import RunService
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.server.listening import ChangeListeners
from massgen_mcp.server.prompts import add_prompts
from massgen_mcp.server.resources import SCHEME, add_resources
from massgen_mcp.server.run_app import add_run_page
from massgen_mcp.server.run_tasks import RunTasks
from massgen_mcp.server.tools import LookBefore, add_tools, nothing_to_look_at
from massgen_mcp.server.waiting import set_level


@dataclass(frozen=True, slots=True)
class BuiltServer:
    server: MassgenServer
    service: RunService
    listening: ChangeListeners

    def stop_waiting(self) -> None:
        """Let every call and every stream that waits end now: the process has to leave."""
        self.service.watcher.stop_waiting()
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


# ---------------------------------------------------------------------------------------------------------------------
# What a client can offer while a person fills in an argument of a prompt or of a resource's address.


Reference = PromptReference | ResourceTemplateReference

MOST = 100
RECENT_RUNS = 100
VIEWS = ["summary", "full", "votes", "agent"]


def add_completion(server: MassgenServer, service: RunService) -> None:
    """Answer `completion/complete`: names of configs, ids of runs, and the agents of a run that is named already."""

    @server.completion()
    async def complete(ref: Reference, argument: CompletionArgument, context: CompletionContext | None) -> Completion:
        known = (context.arguments if context else None) or {}
        choices = await _choices(service, ref, argument.name, known)
        found = [one for one in choices if one.startswith(argument.value)]
        return Completion(values=found[:MOST], total=len(found), has_more=len(found) > MOST)


async def _choices(service: RunService, ref: Reference, argument: str, known: dict[str, str]) -> list[str]:
    match argument:
        case "team":
            return _configs()
        case "name" if isinstance(ref, ResourceTemplateReference) and ref.uri.startswith(f"{SCHEME}configs/"):
            return _configs()
        case "run_id":
            return [
                view.row.run_id for view in await service.watcher.list_runs(limit=RECENT_RUNS) if not view.row.expired
            ]
        case "agent":
            return await _agents(service, known.get("run_id"))
        case "view":
            return VIEWS
        case _:
            return []


def _configs() -> list[str]:
    return [example.name for example in list_examples()]


async def _agents(service: RunService, run_id: str | None) -> list[str]:
    """Of the run that is named, else of the newest one."""
    if run_id is None:
        views = await service.watcher.list_runs(limit=1)
        run_id = views[0].row.run_id if views else ""
    try:
        return [agent.info.id for agent in (await service.watcher.get_run(run_id)).snapshot.agents.values()]
    except MassgenError:
        return []
