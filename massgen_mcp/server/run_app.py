"""The page of a run inside an MCP host: an MCP App (`io.modelcontextprotocol/ui`) that the results of some tools open.

Clients that do not declare the extension are listed nothing of it. The page brings no data along: it asks for them by a
tool of its own, which no model is shown.
"""

from typing import TYPE_CHECKING, Annotated, Any

from mcp.server.apps import APP_MIME_TYPE, Apps, client_supports_apps
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver.resources import FunctionResource
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import Field

from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.checks import MAX_MESSAGE_CHARACTERS
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.results import result
from massgen_mcp.server.results.reply import json_bytes

if TYPE_CHECKING:
    from massgen_mcp.page.data import RunPage
    from massgen_mcp.server.app import MassgenServer


URI = "ui://massgen/run.html"
OPENED_BY = ("start_run", "get_result")
ONLY_FOR_THE_PAGE = {"visibility": ["app"]}
MOST_BYTES = 120_000
"""Of the data as JSON; hosts fail with what is longer than about 150,000 characters."""
HOLDS = tuple((100_000 >> step, 800 >> step) for step in range(6))
"""Characters of texts, and marks, that the page holds: the first of these whose data are not larger than that."""
SUMMARY_CHARACTERS = 2_000
"""So much of the answer is told to the host's model when the run ends while the page is looked at."""


def run_app() -> Apps:
    """The extension with the page; the tools that open it are registered as ever, and pointed at it in `listed`."""

    def html() -> str:
        from massgen_mcp.page.document import (
            document,  # no server starts with these two
            with_data,
        )

        known = {"message_characters": MAX_MESSAGE_CHARACTERS}
        return with_data(document("app.js", styles_too=("app.css",)), known).decode()

    apps = Apps()
    page = FunctionResource(
        uri=URI,
        name="run",
        title="Run page",
        mime_type=APP_MIME_TYPE,
        meta={"ui": {"prefersBorder": True}},
        fn=html,
    )
    apps.add_resource(page)
    return apps


async def listed(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Middleware: lists tell a client of the App if it can show one, else they are as if there were none."""
    found = await call_next(ctx)
    if not isinstance(found, dict):
        return found
    shows = client_supports_apps(ctx)
    match ctx.method:
        case "tools/list" if shows:
            return {**found, "tools": [_opening(tool) for tool in found["tools"]]}
        case "tools/list":
            return {**found, "tools": [tool for tool in found["tools"] if for_models(tool.get("_meta"))]}
        case "resources/list" if not shows:
            return {**found, "resources": [one for one in found["resources"] if one["uri"] != URI]}
        case _:
            return found


def for_models(meta: dict[str, Any] | None) -> bool:
    """Whether a tool of which this is said (`_meta`) is one for models, not for the page alone."""
    return (meta or {}).get("ui") != ONLY_FOR_THE_PAGE


def _opening(tool: dict[str, Any]) -> dict[str, Any]:
    """The flat key is the one of earlier hosts."""
    if tool["name"] not in OPENED_BY:
        return tool
    return {**tool, "_meta": {**tool.get("_meta", {}), "ui": {"resourceUri": URI}, "ui/resourceUri": URI}}


def add_run_page(server: "MassgenServer", service: RunService) -> None:
    """Register the tool that gives the page its data, and nobody else."""

    @server.tool(
        title="Data for a run's page",
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
        meta={"ui": ONLY_FOR_THE_PAGE},
    )
    async def run_page(
        run_id: str, seen: Annotated[str, Field(description="`version` of the data that the page already has.")] = ""
    ) -> CallToolResult:
        """Return what the page of a run draws, or only its `version` if that is drawn already."""
        view = await service.watcher.get_run(run_id)
        note = str(view.damage or view.held_up_by or "")
        fields: dict[str, Any] = {"version": f"{view.snapshot.seq}-{view.state}{'-noted' if note else ''}"}
        fields["goes_on"] = not view.ended and view.damage is None
        if fields["version"] != seen:
            fields["page"] = await _drawn(service, view)
            fields["note"] = note
            fields["ending"] = _ending(view) if view.ended else ""
        return CallToolResult(content=[], structured_content=fields)


async def _drawn(service: RunService, view: RunView) -> dict[str, Any]:
    """The data of the page, as much as there is room for. Raises `MassgenError` invalid_action."""
    from massgen_mcp.page.left_out import Most  # no server starts with it

    def taken(page: "RunPage") -> dict[str, Any] | None:
        data = page.model_dump(mode="json")
        return data if json_bytes(data) <= MOST_BYTES else None

    if page := await service.pages.draw_fitting(view, (Most(*held) for held in HOLDS), taken):
        return page
    raise MassgenError("invalid_action", f"this run is too large to show here; open {view.directory.report} instead")


def _ending(view: RunView) -> str:
    """What a model is told of a run that has ended, without asking for it."""
    try:
        text = result(view, "summary", None, 0, SUMMARY_CHARACTERS).text()
    except MassgenError as error:
        text = f"ERROR {error.code}: {error}"
    return f"Run {view.row.run_id} has ended; get_result returns:\n\n{text}"
