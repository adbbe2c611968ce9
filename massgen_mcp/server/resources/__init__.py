"""What can be read of runs and configs as MCP resources. Whoever may call the tools may read them, and sees the same.

Everything is bounded: what is longer comes in pages, or is refused with a sentence that says so.
"""

import json
from typing import Annotated

from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.types import CallToolResult, InputRequiredResult, Resource, TextContent
from pydantic import Field

from massgen_mcp.config.examples import Example, example_path, list_examples
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine.rows import RunRow
from massgen_mcp.runs.service import RunService
from massgen_mcp.server.addresses import SCHEME, config_uri, run_uri
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.server.resources.artifacts import artifact
from massgen_mcp.server.resources.pages import event_page, log_page
from massgen_mcp.views.plain_text import preview

LISTED_RUNS = 20
"""The newest runs are listed; the tool list_runs has all."""
JSON_TYPE, TEXT_TYPE, YAML_TYPE = "application/json", "text/plain", "application/yaml"
RUN = f"{SCHEME}runs/{{run_id}}"

Position = Annotated[int, Field(ge=0)]


def add_resources(server: MassgenServer, service: RunService) -> None:
    """Register everything that can be read on `server`, answered by `service`."""

    @server.resource(f"{RUN}/status", title="Status of a run", mime_type=JSON_TYPE)
    async def status(run_id: str) -> str:
        """What the run is doing now, as the tool get_status tells it."""
        return _text_of(await server.call_tool("get_status", {"run_id": run_id}))

    @server.resource(f"{RUN}/result{{?view,agent,offset}}", title="Result of a run", mime_type=JSON_TYPE)
    async def result(run_id: str, view: str = "summary", agent: str | None = None, offset: Position = 0) -> str:
        """The final answer first, then the votes, as the tool get_result tells it."""
        arguments = {"run_id": run_id, "view": view, "agent": agent, "offset": offset}
        reply = await server.call_tool("get_result", {key: one for key, one in arguments.items() if one is not None})
        return _text_of(reply)

    @server.resource(f"{RUN}/events{{?after}}", title="Events of a run", mime_type=JSON_TYPE)
    async def events(run_id: str, after: Position = 0) -> str:
        """What has happened in the run, in order; `next` is the address of the following page."""
        return await event_page(await service.look(run_id), after)

    @server.resource(f"{RUN}/log{{?offset}}", title="Log of a run", mime_type=TEXT_TYPE)
    async def log(run_id: str, offset: Annotated[int | None, Field(ge=0)] = None) -> str:
        """What has happened in the run, a line each; the newest part of a long log, or the part from `offset` on."""
        return await log_page(await service.look(run_id), offset)

    @server.resource(f"{RUN}/artifacts/{{+path}}", title="File of a run", mime_type="application/octet-stream")
    async def artifacts(run_id: str, path: str) -> str | bytes:
        """An answer, or a file that belongs to it: below `final/` and `turn_1/`. A directory is listed."""
        return await artifact(await service.look(run_id), path)

    @server.resource(f"{SCHEME}configs/{{+name}}", title="Team config", mime_type=YAML_TYPE)
    async def config(name: str) -> str:
        """The YAML of a ready-made team."""
        return example_path(name).read_text(encoding="utf-8")

    async def listed() -> list[Resource]:
        views = await service.recent(limit=LISTED_RUNS)
        return [*(_of_run(view.row) for view in views if not view.row.expired), *map(_of_config, list_examples())]

    server.list_also(listed)


def _text_of(reply: CallToolResult | InputRequiredResult) -> str:
    """A tool's reply as a document. Raises `ResourceNotFoundError` where the tool refused."""
    if not isinstance(reply, CallToolResult):
        raise TypeError("only a tool call can ask the client")
    if reply.is_error or reply.structured_content is None:
        raise ResourceNotFoundError(" ".join(block.text for block in reply.content if isinstance(block, TextContent)))
    return json.dumps(reply.structured_content, ensure_ascii=False, separators=(",", ":"))


def _of_run(row: RunRow) -> Resource:
    """What is worth reading of a run: its result, and before that its status."""
    view = "result" if row.state in TERMINAL_STATES else "status"
    return Resource(
        uri=run_uri(row.run_id, view),
        name=f"{row.run_id}/{view}",
        title=f"{view.capitalize()}: {preview(row.question, 80)}",
        description=f"A run that is {row.state}.",
        mime_type=JSON_TYPE,
    )


def _of_config(example: Example) -> Resource:
    return Resource(
        uri=config_uri(example.name),
        name=example.name,
        title=f"Team {example.name}",
        description=example.description,
        mime_type=YAML_TYPE,
    )
