"""Writes massgen_mcp/server/first_answers.json: what a client asks a server first, and what the server says to it.

The server itself is asked, once by each version of the protocol that it speaks.
"""

import json
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from massgen_mcp.home import Home
from massgen_mcp.redaction import NO_KEYS
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import local_engine
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.server.build import build_server
from massgen_mcp.server.front import (
    ACKNOWLEDGED,
    CLIENT_CAPABILITIES,
    LIST_CHANGES,
    LISTEN,
    PROTOCOL_VERSION,
    FirstAnswers,
)

ASKED = ("ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list")


async def page() -> str:
    """As the file holds it: every answer once, and by version and method its place among them."""
    with new_server() as server:
        made = await first_answers(server)
    different: list[dict[str, object]] = []
    places: dict[str, dict[str, int]] = {}
    for version, answers in made.items():
        for method, answer in answers.items():
            if answer not in different:
                different.append(answer)
            places.setdefault(version, {})[method] = different.index(answer)
    return json.dumps({"answers": different, "places": places}, indent=1, ensure_ascii=False) + "\n"


@contextmanager
def new_server() -> Generator[MassgenServer]:
    """As the code makes it now. One that a client starts answers first out of the file, which may be old."""
    with tempfile.TemporaryDirectory(prefix="massgen-mcp-docs-") as directory:
        home = Home(Path(directory) / "state")
        service = RunService(local_engine(home), {})
        yield build_server(home, service, NO_KEYS).server
        service.close()


async def first_answers(server: MassgenServer) -> FirstAnswers:
    """What the server refuses is left out."""
    made: FirstAnswers = {}
    for version in HANDSHAKE_PROTOCOL_VERSIONS:
        client: dict[str, object] = {"name": "massgen-mcp", "version": "0"}
        opening: dict[str, object] = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        made[version] = await _answers(server, [("initialize", opening), *((method, {}) for method in ASKED)])
    for version in MODERN_PROTOCOL_VERSIONS:
        params: dict[str, object] = {"_meta": {PROTOCOL_VERSION: version, CLIENT_CAPABILITIES: {}}}
        listen: dict[str, object] = {**params, "notifications": dict.fromkeys(LIST_CHANGES, True)}
        questions = [(method, params) for method in ("server/discover", *ASKED)]
        made[version] = await _answers(server, [*questions, (LISTEN, listen)])
    return made


async def _answers(
    server: MassgenServer, questions: list[tuple[str, dict[str, object]]]
) -> dict[str, dict[str, object]]:
    """The results in one session, as they go over the wire."""
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    results: dict[str, dict[str, object]] = {}
    async with anyio.create_task_group() as tasks, to_server, from_server:
        tasks.start_soon(server.serve, incoming, outgoing)
        for number, (method, params) in enumerate(questions, start=1):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            await to_server.send(SessionMessage(jsonrpc_message_adapter.validate_python(request)))
            answer: dict[str, object] = {}
            while answer.get("id") != number and answer.get("method") != ACKNOWLEDGED:
                reply = await from_server.receive()
                answer = json.loads(reply.message.model_dump_json(by_alias=True, exclude_unset=True))
            if isinstance(result := answer.get("result"), dict):
                results[method] = cast("dict[str, object]", result)
            elif isinstance(acknowledged := answer.get("params"), dict):
                results[method] = cast("dict[str, object]", cast("dict[str, object]", acknowledged)["notifications"])
            if method == "initialize":
                done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                await to_server.send(SessionMessage(jsonrpc_message_adapter.validate_python(done)))
        tasks.cancel_scope.cancel()
    return results
