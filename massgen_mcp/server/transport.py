"""What both transports share: how large a message of a client may be, what one is answered that holds half a character,
and how the process leaves.

Half a character is such as `"\\ud800"` without the other half. That is valid JSON and no text, so no reader of the SDK
takes it, and without an answer of ours its sender would wait.
"""

import json
import logging
import os
import re
from typing import NoReturn, cast

import anyio
from mcp.types import (
    INVALID_REQUEST,
    CallToolResult,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCResponse,
    TextContent,
)

from massgen_mcp.request.question import is_unicode

MAX_BODY_BYTES = 4 * 1024 * 1024
"""A request's body over HTTP."""
MAX_LINE_BYTES = 12 * 1024 * 1024
"""A line on standard input. More than the longest question, so that one that is too long is refused as such."""
PARENT_CHECK_SECONDS = 2.0


def leave() -> NoReturn:
    """End without unwinding: a thread that reads, or waits for the store, cannot be cancelled and would hold us up."""
    logging.shutdown()
    os._exit(0)


async def leave_with_parent(parent: int) -> None:
    """A client that was killed may leave our input open in one of its other children."""
    while os.getppid() == parent:  # noqa: ASYNC110 - nobody tells us
        await anyio.sleep(PARENT_CHECK_SECONDS)
    leave()


_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
HALF_OF_A_PAIR = "the request contains half of a surrogate pair, which isn't valid Unicode; send the whole character"


def answer_to_half_characters(message: bytes) -> JSONRPCMessage | None:
    """What a request that holds half a character is answered with, under its id; None for anything else."""
    if not _HALF.search(message):
        return None
    try:
        parsed: object = json.loads(message)
        whole = is_unicode(json.dumps(parsed, ensure_ascii=False))
    except (ValueError, RecursionError):
        return None
    if whole or not isinstance(parsed, dict):
        return None
    request = cast("dict[str, object]", parsed)
    identity = request.get("id")
    if isinstance(identity, bool) or not isinstance(identity, int | str) or not is_unicode(str(identity)):
        return None
    if request.get("method") != "tools/call":
        error = ErrorData(code=INVALID_REQUEST, message=HALF_OF_A_PAIR)
        return JSONRPCError(jsonrpc="2.0", id=identity, error=error)
    text = TextContent(type="text", text=f"ERROR invalid_arguments: {HALF_OF_A_PAIR}")
    refusal = CallToolResult(content=[text], is_error=True)
    result = refusal.model_dump(mode="json", by_alias=True, exclude_none=True)
    return JSONRPCResponse(jsonrpc="2.0", id=identity, result=result)
