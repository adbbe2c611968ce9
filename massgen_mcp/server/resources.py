"""What can be read of runs and configs as MCP resources, and its addresses: `massgen://runs/{run_id}/...` and
`massgen://configs/{name}`. Whoever may call the tools may read them, and sees the same.

Everything is bounded: what is longer comes in pages, or is refused with a sentence that says so.
"""

import json
import re
from typing import Annotated, Literal, cast, get_args
from urllib.parse import quote

from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.types import CallToolResult, InputRequiredResult, Resource, TextContent
from pydantic import Field

from massgen_mcp.config.examples import Example, example_path, list_examples
from massgen_mcp.name_lists import join_names
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine import RunRow
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.threads import in_thread
from massgen_mcp.views.plain_text import preview
from massgen_mcp.workspace.guard import DirectoryListing, PathMissing, PathRefused, Root, parts_of, shown

SCHEME = "massgen://"
RunResource = Literal["status", "result", "events", "log", "artifacts"]
_OF_A_RUN = re.compile(rf"{SCHEME}runs/([^/?#]+)/({'|'.join(get_args(RunResource))})(?:[/?].*)?")


def run_uri(run_id: str, view: RunResource, rest: str = "") -> str:
    """`rest`: what follows the view, such as a path or a query."""
    return f"{SCHEME}runs/{run_id}/{view}{rest}"


def run_in(uri: str) -> tuple[str, RunResource] | None:
    """The run that a resource shows, and what of it; None for anything else."""
    found = _OF_A_RUN.fullmatch(uri)
    return (found[1], cast("RunResource", found[2])) if found else None


LISTED_RUNS = 20
"""The newest runs are listed; the tool list_runs has all."""
JSON_TYPE, TEXT_TYPE, YAML_TYPE = "application/json", "text/plain", "application/yaml"
RUN = f"{SCHEME}runs/{{run_id}}"

Position = Annotated[int, Field(ge=0)]


def add_resources(server: MassgenServer, service: RunService) -> None:
    """Register everything that can be read on `server`, answered by `service`."""

    @server.resource(f"{RUN}/status", title="Run status", mime_type=JSON_TYPE)
    async def status(run_id: str) -> str:
        """The current status of the run, as get_status returns it."""
        return _text_of(await server.call_tool("get_status", {"run_id": run_id}))

    @server.resource(f"{RUN}/result{{?view,agent,offset}}", title="Run result", mime_type=JSON_TYPE)
    async def result(run_id: str, view: str = "summary", agent: str | None = None, offset: Position = 0) -> str:
        """The final answer and the votes, as get_result returns them."""
        arguments = {"run_id": run_id, "view": view, "agent": agent, "offset": offset}
        reply = await server.call_tool("get_result", {key: one for key, one in arguments.items() if one is not None})
        return _text_of(reply)

    @server.resource(f"{RUN}/events{{?after}}", title="Run events", mime_type=JSON_TYPE)
    async def events(run_id: str, after: Position = 0) -> str:
        """The run's events in order; `next` is the address of the next page."""
        return await event_page(await service.watcher.get_run(run_id), after)

    @server.resource(f"{RUN}/log{{?offset}}", title="Run log", mime_type=TEXT_TYPE)
    async def log(run_id: str, offset: Annotated[int | None, Field(ge=0)] = None) -> str:
        """The run's log: the newest part if it is long, or the part from `offset` on."""
        return await log_page(await service.watcher.get_run(run_id), offset)

    @server.resource(f"{RUN}/artifacts/{{+path}}", title="Run file", mime_type="application/octet-stream")
    async def artifacts(run_id: str, path: str) -> str | bytes:
        """A file from an answer (under `final/` or `turn_1/`), or a directory listing."""
        return await artifact(await service.watcher.get_run(run_id), path)

    @server.resource(f"{SCHEME}configs/{{+name}}", title="Team config", mime_type=YAML_TYPE)
    async def config(name: str) -> str:
        """The YAML of a ready-made team."""
        return example_path(name).read_text(encoding="utf-8")

    async def listed() -> list[Resource]:
        views = await service.watcher.list_runs(limit=LISTED_RUNS)
        return [*(_of_run(view.row) for view in views if not view.row.expired), *map(_of_config, list_examples())]

    server.list_also(listed)


def _text_of(reply: CallToolResult | InputRequiredResult) -> str:
    """A tool's reply as a document. Raises `ResourceNotFoundError` where the tool refused."""
    if not isinstance(reply, CallToolResult):
        raise TypeError("massgen can ask the client only during a tool call")
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
        description=f"Run state: {row.state}.",
        mime_type=JSON_TYPE,
    )


def _of_config(example: Example) -> Resource:
    return Resource(
        uri=f"{SCHEME}configs/{quote(example.name)}",
        name=example.name,
        title=f"Team {example.name}",
        description=example.description,
        mime_type=YAML_TYPE,
    )


# -- the events and the log of a run, a page at a time ----------------------------------------------------------------


PAGE_BYTES = 50_000
EVENTS_AT_ONCE = 200


@in_thread
def event_page(view: RunView, after: int) -> str:
    """The events with numbers above `after`, as JSON. An event longer than a page gets a page to itself.
    Raises `MassgenError` run_damaged, store_unavailable.
    """
    reader = view.directory.event_log.follow(after)
    shown: list[str] = []
    room, last, more = PAGE_BYTES, after, False
    while not more and (records := reader.read(EVENTS_AT_ONCE)):
        for record in records:
            line = record.model_dump_json(exclude={"v", "unread"})
            more = bool(shown) and len(line.encode()) > room
            if more:
                break
            shown.append(line)
            room -= len(line.encode())
            last = record.seq
    following = json.dumps(run_uri(view.row.run_id, "events", f"?after={last}"))
    return f'{{"events":[{",".join(shown)}],"last":{last},"more":{json.dumps(more)},"next":{following}}}'


@in_thread
def log_page(view: RunView, offset: int | None) -> str:
    """The lines from byte `offset` on, or the last ones that fit; a line in brackets says how to read the rest."""
    log = view.directory.log
    try:
        with Root.open(log.parent, "") as root, root.open_file(log.name) as file:
            size = file.seek(0, 2)
            start = max(0, size - PAGE_BYTES) if offset is None else min(offset, size)
            file.seek(start)
            data = file.read(PAGE_BYTES)
    except PathMissing:  # nobody has begun with it
        return ""
    if start > 0 and offset is None:
        first = data.find(b"\n") + 1
        start, data = start + first, data[first:]
    if start + len(data) < size and (whole := data.rfind(b"\n") + 1):
        data = data[:whole]
    end = start + len(data)
    before = f"[{start} bytes before this: {run_uri(view.row.run_id, 'log', '?offset=0')}]\n" if start else ""
    after = f"[more: {run_uri(view.row.run_id, 'log', f'?offset={end}')}]\n" if end < size else ""
    return f"{before}{data.decode(errors='replace')}{after}"


# ---------------------------------------------------------------------------------------------------------------------
# The files that a run leaves for its caller: answers and what belongs to them, all through the path guard.


MAX_BYTES = 1024 * 1024
LISTED = 500
ROOTS = ("final", "turn_1")
"""The directories whose files can be read. The others are of no use to a caller, or change while agents work."""


@in_thread
def artifact(view: RunView, path: str) -> str | bytes:
    """A file's contents, or a directory's entries with their addresses, as JSON. Raises `PathRefused`."""
    parts = parts_of(path)
    with Root.open(view.directory.path, "", above=()) as root:
        if not parts:
            return _listing_text(view, *(_entries(root, name) for name in ROOTS))
        if parts[0] not in ROOTS:
            raise PathMissing(f"{shown(path)}: artifact not found; artifacts are under {join_names(ROOTS)}")
        if root.stat("/".join(parts)).kind == "directory":
            return _listing_text(view, root.list_dir("/".join(parts), LISTED))
        data = root.read_bytes("/".join(parts), MAX_BYTES)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _entries(root: Root, name: str) -> DirectoryListing:
    try:
        return root.list_dir(name, LISTED)
    except PathRefused:
        return DirectoryListing(())


def _listing_text(view: RunView, *listings: DirectoryListing) -> str:
    entries = [
        {
            "path": entry.path,
            "kind": entry.kind,
            "bytes": entry.size,
            "uri": run_uri(view.row.run_id, "artifacts", f"/{quote(entry.path)}"),
        }
        for listing in listings
        for entry in listing.entries
    ]
    return json.dumps({"entries": entries, "cut": any(listing.cut for listing in listings)}, ensure_ascii=False)
