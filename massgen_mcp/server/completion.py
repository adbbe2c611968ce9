"""What a client can offer while a person fills in an argument of a prompt or of a resource's address."""

from mcp.types import Completion, CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference

from massgen_mcp.config.examples import list_examples
from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.service import RunService
from massgen_mcp.server.addresses import SCHEME
from massgen_mcp.server.app import MassgenServer

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
            return [view.row.run_id for view in await service.recent(limit=RECENT_RUNS) if not view.row.expired]
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
        views = await service.recent(limit=1)
        run_id = views[0].row.run_id if views else ""
    try:
        return [agent.info.id for agent in (await service.look(run_id)).snapshot.agents.values()]
    except MassgenError:
        return []
