"""The files that a run leaves for its caller: answers and what belongs to them, all through the path guard."""

import json

import anyio.to_thread

from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.addresses import artifact_uri
from massgen_mcp.workspace.guard import DirectoryListing, PathMissing, PathRefused, Root, parts_of, shown

MAX_BYTES = 1024 * 1024
LISTED = 500
ROOTS = ("final", "turn_1")
"""The directories whose files can be read. The others are of no use to a caller, or change while agents work."""


async def artifact(view: RunView, path: str) -> str | bytes:
    """A file as it is, or a directory's entries with their addresses, as JSON. Raises `PathRefused`."""
    return await anyio.to_thread.run_sync(_artifact, view, path)


def _artifact(view: RunView, path: str) -> str | bytes:
    parts = parts_of(path)
    with Root.open(view.directory.path, "", above=()) as root:
        if not parts:
            return _listing_text(view, *(_entries(root, name) for name in ROOTS))
        if parts[0] not in ROOTS:
            raise PathMissing(f"{shown(path)}: no such artifact; they lie below {' and '.join(ROOTS)}")
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
        {"path": entry.path, "kind": entry.kind, "bytes": entry.size, "uri": artifact_uri(view.row.run_id, entry.path)}
        for listing in listings
        for entry in listing.entries
    ]
    return json.dumps({"entries": entries, "cut": any(listing.cut for listing in listings)}, ensure_ascii=False)
