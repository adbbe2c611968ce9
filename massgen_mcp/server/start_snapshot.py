"""What a client asks a server first, and what the server says to it: made by the server itself, kept for later starts.

A snapshot belongs to the very code that made it: another version of this package, of the SDK, of pydantic or of Python,
and also a changed file of this package, has another name and so no snapshot yet. Importing this imports no SDK.
"""

import hashlib
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, cast

import platformdirs

from massgen_mcp.home import HOME_VARIABLE
from massgen_mcp.server.front import (
    ACKNOWLEDGED,
    CLIENT_CAPABILITIES,
    LIST_CHANGES,
    LISTEN,
    PROTOCOL_VERSION,
    Json,
    Snapshot,
)

if TYPE_CHECKING:
    from massgen_mcp.server.app import MassgenServer

logger = logging.getLogger(__name__)

PACKAGE = Path(__file__).parent.parent
DEPENDENCIES = ("mcp", "mcp_types", "pydantic", "pydantic_core")
ASKED = ("ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list")
KEPT = 4
"""Snapshots of so many versions are kept, the newest."""


def read_snapshot(environ: Mapping[str, str]) -> Snapshot | None:
    """The snapshot of this code, if it was started before."""
    try:
        found: object = json.loads(_path(environ).read_bytes())
    except (OSError, ValueError):
        return None
    return cast("Snapshot", found) if isinstance(found, dict) else None


async def keep_snapshot(server: "MassgenServer", environ: Mapping[str, str] = os.environ) -> None:
    """Make the snapshot for the next start, if there is none. Whatever keeps it from that is no fault of this start."""
    path = _path(environ)
    if path.exists():
        return
    try:
        made = await make_snapshot(server)
    except Exception:
        logger.exception("no snapshot for the next start")
        return
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        fresh.write_text(json.dumps(made), encoding="utf-8")
        fresh.replace(path)
        known = sorted(path.parent.glob("start-*.json"), key=lambda one: one.stat().st_mtime)
        for old in known[:-KEPT]:
            old.unlink()


async def make_snapshot(server: "MassgenServer") -> Snapshot:
    """Ask the server what clients ask first, once by each version of the protocol. What it refuses is left out."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

    snapshot: Snapshot = {}
    for version in HANDSHAKE_PROTOCOL_VERSIONS:
        client: Json = {"name": "massgen-mcp", "version": "0"}
        opening: Json = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        snapshot[version] = await _answers(server, [("initialize", opening), *((method, {}) for method in ASKED)])
    for version in MODERN_PROTOCOL_VERSIONS:
        params: Json = {"_meta": {PROTOCOL_VERSION: version, CLIENT_CAPABILITIES: {}}}
        listen: Json = {**params, "notifications": dict.fromkeys(LIST_CHANGES, True)}
        questions = [(method, params) for method in ("server/discover", *ASKED)]
        snapshot[version] = await _answers(server, [*questions, (LISTEN, listen)])
    return snapshot


async def _answers(server: "MassgenServer", questions: list[tuple[str, Json]]) -> dict[str, Json]:
    """The results in one session, as they go over the wire."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    results: dict[str, Json] = {}
    async with anyio.create_task_group() as tasks, to_server, from_server:
        tasks.start_soon(server.serve, incoming, outgoing)
        for number, (method, params) in enumerate(questions, start=1):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            await to_server.send(SessionMessage(jsonrpc_message_adapter.validate_python(request)))
            answer: Json = {}
            while answer.get("id") != number and answer.get("method") != ACKNOWLEDGED:  # it may tell of changes between
                reply = await from_server.receive()
                answer = json.loads(reply.message.model_dump_json(by_alias=True, exclude_unset=True))
            if isinstance(result := answer.get("result"), dict):
                shown = cast("Json", result)
                results[method] = _without_runs(shown) if method == "resources/list" else shown
            elif isinstance(acknowledged := answer.get("params"), dict):
                results[method] = cast("Json", cast("Json", acknowledged)["notifications"])
            if method == "initialize":
                done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                await to_server.send(SessionMessage(jsonrpc_message_adapter.validate_python(done)))
        tasks.cancel_scope.cancel()
    return results


def _without_runs(listed: Json) -> Json:
    """What never changes: whoever was answered so early is told of the runs when the server is there (`Listening`)."""
    from massgen_mcp.server.addresses import run_in

    resources = cast("list[Json]", listed["resources"])
    return {**listed, "resources": [one for one in resources if run_in(str(one["uri"])) is None]}


def _path(environ: Mapping[str, str]) -> Path:
    home = environ.get(HOME_VARIABLE)
    directory = Path(home) / "cache" if home else platformdirs.user_cache_path("massgen-mcp")
    return directory / f"start-{_digest()}.json"


@cache
def _digest() -> str:
    """Of everything that decides the answers, as it was when the process began to load it."""
    facts = [sys.version, *_installed(), *sorted(_files(PACKAGE))]
    return hashlib.blake2b("\0".join(facts).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _installed() -> Iterator[str]:
    """Names and versions of what the answers depend on, without importing it."""
    spec = find_spec("mcp")
    if spec is not None and spec.origin is not None:
        for name in sorted(path.name for path in Path(spec.origin).parent.parent.iterdir()):
            if name.endswith(".dist-info") and name.startswith(tuple(f"{one}-" for one in DEPENDENCIES)):
                yield name


def _files(directory: Path) -> Iterator[str]:
    """The sources with size and time of change, by which Python itself knows whether they are new."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir() and entry.name != "__pycache__":
                yield from _files(Path(entry.path))
            elif entry.name.endswith((".py", ".toml")):
                found = entry.stat()
                yield f"{entry.path} {found.st_size} {found.st_mtime_ns}"
