"""Makes readable what a server sends with something wrong or unknown in it: that must not take the rest along.

What is left of a wrong tool can be called, and the server is to say what it lacks. A part of a result that is of no
known kind becomes text.
"""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import anyio
import mcp_types
from mcp.shared.message import SessionMessage
from pydantic import TypeAdapter, ValidationError

from massgen_mcp.mcp_streams import TransportStreams

_BLOCK: TypeAdapter[mcp_types.ContentBlock] = TypeAdapter(mcp_types.ContentBlock)
MAX_UNKNOWN = 2000
"""Characters that are shown of a part of a result that is of no known kind."""
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@asynccontextmanager
async def mended(streams: TransportStreams) -> AsyncGenerator[TransportStreams]:
    """The same streams; lists of tools and results of calls that come over them are mended."""
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
    found = message.message.result
    if isinstance(tools := found.get("tools"), list):
        changed: dict[str, Any] = {"tools": [tool for one in cast("list[object]", tools) if (tool := _tool(one))]}
    elif found.keys() & {"content", "structuredContent"}:
        changed = {"content": [*_blocks(found.get("content"))], "isError": found.get("isError") not in (False, None)}
        structured = found.get("structuredContent")
        if structured is not None and not isinstance(structured, dict):  # not every revision of the protocol has that
            shown = json.dumps(structured, ensure_ascii=False)
            changed |= {"structuredContent": None, "content": changed["content"] or [{"type": "text", "text": shown}]}
    else:
        return message
    whole = {**found, **changed}
    return SessionMessage(message.message.model_copy(update={"result": whole}), metadata=message.metadata)


def _blocks(content: object) -> Iterator[object]:
    """The parts of a result."""
    parts = cast("list[object]", content) if isinstance(content, list) else [] if content is None else [content]
    for part in parts:
        yield part if _is_known(part) else {"type": "text", "text": _as_text(part)}


def _is_known(part: object) -> bool:
    try:
        _BLOCK.validate_python(part)
    except ValidationError:
        return False
    return isinstance(part, dict) and "type" in part


def _as_text(part: object) -> str:
    if isinstance(part, str):
        return part
    fields = cast("dict[str, object]", part) if isinstance(part, dict) else {}
    if isinstance(fields.get("text"), str):
        return str(fields["text"])
    kind = fields.get("type")
    shown = json.dumps(part, ensure_ascii=False, default=str)[:MAX_UNKNOWN]
    return f"[a part of unknown kind{f' {kind}' if isinstance(kind, str) else ''}: {shown}]"


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
        given = cast("dict[str, object]", hints)
        whole["annotations"] = {hint: given[hint] for hint in _HINTS if isinstance(given.get(hint), bool)}
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
