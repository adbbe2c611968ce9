"""The events and the log of a run, a page at a time."""

import json

import anyio.to_thread

from massgen_mcp.events.record import LogRecord
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.addresses import run_uri
from massgen_mcp.workspace.guard import PathMissing, Root

PAGE_BYTES = 50_000
EVENTS_AT_ONCE = 200


async def event_page(view: RunView, after: int) -> str:
    """The events whose number is above `after`, as JSON. One event that is longer than a page is a page of its own.
    Raises `MassgenError` run_damaged, store_unavailable.
    """
    return await anyio.to_thread.run_sync(_event_page, view, after)


async def log_page(view: RunView, offset: int | None) -> str:
    """The lines from byte `offset` on, or the last ones that fit; a line in brackets says how to read the others."""
    return await anyio.to_thread.run_sync(_log_page, view, offset)


def _event_page(view: RunView, after: int) -> str:
    reader = view.directory.event_log.follow(after)
    shown: list[str] = []
    room, last, more = PAGE_BYTES, after, False
    while not more and (records := reader.read(EVENTS_AT_ONCE)):
        for record in records:
            line = _line(record)
            more = bool(shown) and len(line.encode()) > room
            if more:
                break
            shown.append(line)
            room -= len(line.encode())
            last = record.seq
    following = json.dumps(run_uri(view.row.run_id, "events", f"?after={last}"))
    return f'{{"events":[{",".join(shown)}],"last":{last},"more":{json.dumps(more)},"next":{following}}}'


def _line(record: LogRecord) -> str:
    return record.model_dump_json(exclude={"v", "unread"})


def _log_page(view: RunView, offset: int | None) -> str:
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
