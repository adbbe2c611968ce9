"""Makes a list of tools readable that has a wrong entry in it: one wrong tool must not take the others along.

What is left of a wrong one can be called, and the server is to say what it lacks.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import anyio
import mcp_types
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage

_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@asynccontextmanager
async def mended(streams: TransportStreams) -> AsyncGenerator[TransportStreams]:
    """The same streams; lists of tools that come over them are mended."""
    from_server, to_server = streams
    to_client, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    async def relay() -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with to_client:
                async for message in from_server:
                    await to_client.send(_mended(message))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(relay)
        try:
            yield received, to_server
        finally:
            tasks.cancel_scope.cancel()
            to_client.close()
            received.close()


def _mended(message: SessionMessage | Exception) -> SessionMessage | Exception:
    if isinstance(message, Exception) or not isinstance(message.message, mcp_types.JSONRPCResponse):
        return message
    tools = message.message.result.get("tools")
    if not isinstance(tools, list):
        return message
    whole = {**message.message.result, "tools": [tool for one in cast("list[object]", tools) if (tool := _tool(one))]}
    return SessionMessage(message.message.model_copy(update={"result": whole}), metadata=message.metadata)


def _tool(found: object) -> dict[str, Any] | None:
    """What is read of one tool. None if it has no name."""
    tool = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    name, about, schema, hints = (tool.get(key) for key in ("name", "description", "inputSchema", "annotations"))
    if not isinstance(name, str) or not name:
        return None
    whole: dict[str, Any] = {"name": name, "inputSchema": schema if _is_of_object(schema) else {"type": "object"}}
    if isinstance(about, str):
        whole["description"] = about
    if isinstance(hints, dict):
        said = cast("dict[str, object]", hints)
        whole["annotations"] = {hint: said[hint] for hint in _HINTS if isinstance(said.get(hint), bool)}
    return whole


def _is_of_object(schema: object) -> bool:
    if not isinstance(schema, dict):
        return False
    part = cast("dict[str, object]", schema)
    properties, required = part.get("properties", {}), part.get("required", [])
    return (
        part.get("type") == "object"
        and isinstance(properties, dict)
        and all(isinstance(each, dict) for each in cast("dict[str, object]", properties).values())
        and isinstance(required, list)
        and all(isinstance(each, str) for each in cast("list[object]", required))
    )
