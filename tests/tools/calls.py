"""A model's calls of one of its tools, that have to succeed or to be refused; with the text that it is told."""

from collections.abc import Mapping

from massgen_mcp.backends.base import JsonObject
from massgen_mcp.tools.base import Tool


async def ok(tools: Mapping[str, Tool], name: str, arguments: JsonObject) -> str:
    result = await tools[name].run(arguments)
    assert not result.is_error, result.text
    return result.text


async def refused(tools: Mapping[str, Tool], name: str, arguments: JsonObject) -> str:
    result = await tools[name].run(arguments)
    assert result.is_error, result.text
    return result.text
