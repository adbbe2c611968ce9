"""Tool schemas as small as they can be said: a parent agent pays for them in every conversation.

No schema says `X or null`: an argument that is not given is left out, and so is what a reply does not know.
"""

import inspect
from functools import cache
from typing import cast

from mcp.types import Tool
from pydantic import BaseModel

from massgen_mcp.server.results.reply import Json, ToolReply


def compacted(tool: Tool) -> Tool:
    """The same tool in fewer words: no titles that repeat names, no indentation. Unknown arguments are refused."""
    tool.description = " ".join(inspect.cleandoc(tool.description or "").split())
    tool.input_schema = {**_smaller(tool.input_schema), "additionalProperties": False}
    return tool


def reply_schema(reply: type[ToolReply]) -> Json:
    """Which members its data has, of which type, and which are always there; what they hold is not said. Of a reply
    that goes on as one of several others, the members that all of those have.
    """
    own, *others = reply.schema_sources()
    members, required = _properties(own), _required(own)
    if others:
        members = members | {
            name: kind
            for name, kind in _properties(others[0]).items()
            if all(name in each.model_fields for each in others)
        }
        required += [name for name in _required(others[0]) if all(name in _required(each) for each in others)]
    return {"type": "object", "properties": {name: _kind(each) for name, each in members.items()}, "required": required}


@cache  # several tools reply with the same, and a server's client waits for the first list of tools
def _properties(model: type[BaseModel]) -> Json:
    return cast("Json", model.model_json_schema(mode="serialization")["properties"])


def _required(model: type[BaseModel]) -> list[str]:
    return [name for name, field in model.model_fields.items() if field.is_required()]


def _kind(schema: object) -> Json:
    """`{"type": ...}` alone; empty where there are several."""
    given = cast("Json", schema)
    options = cast("list[Json]", given.get("anyOf", [given]))
    kinds = {str(option.get("type", "object")) for option in options} - {"null"}
    return {"type": kinds.pop()} if len(kinds) == 1 else {}


def _smaller(schema: Json) -> Json:
    """Pydantic's schema without titles, descriptions of classes and nulls."""
    return {key: _value(key, value) for key, value in _not_null(schema).items() if not _noise(key, value)}


def _not_null(schema: Json) -> Json:
    """`X or null` as `X`."""
    options = [option for option in cast("list[Json]", schema.get("anyOf", [])) if option != {"type": "null"}]
    if len(options) != 1:
        return schema
    return {**options[0], **{key: value for key, value in schema.items() if key != "anyOf"}}


def _without_docstring(schema: Json) -> Json:
    return {key: value for key, value in schema.items() if key != "description"}


def _noise(key: str, value: object) -> bool:
    return (key == "title" and isinstance(value, str)) or (key == "default" and value is None)


def _value(key: str, value: object) -> object:
    if key in ("properties", "$defs"):
        items = cast("dict[str, Json]", value).items()
        return {name: _smaller(item if key == "properties" else _without_docstring(item)) for name, item in items}
    if isinstance(value, dict):
        return _smaller(cast("Json", value))
    if key == "anyOf":
        return [_smaller(item) for item in cast("list[Json]", value)]
    return value
