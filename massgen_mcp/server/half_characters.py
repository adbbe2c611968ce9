"""Requests that hold half a character, such as `"\\ud800"` without the other half. That is valid JSON and no text, so
no reader of the SDK takes it, and without an answer of ours its sender would wait.

Knows neither transport.
"""

import json
import re
from typing import cast

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

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
HALF_OF_A_PAIR = "the request holds half of a surrogate pair, which is not valid Unicode text; send the whole character"


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
