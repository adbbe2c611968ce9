"""Tool schemas as small as they can be said: a parent agent pays for them in every conversation."""

import inspect
from typing import cast

from mcp.types import Tool

Json = dict[str, object]


def compacted(tool: Tool) -> Tool:
    """The same tool in fewer words: no titles that repeat names, no indentation. Unknown arguments are refused."""
    tool.description = " ".join(inspect.cleandoc(tool.description or "").split())
    tool.input_schema = {**_smaller(tool.input_schema), "additionalProperties": False}
    if tool.output_schema is not None:
        tool.output_schema = _smaller(tool.output_schema, defaults=False)
    return tool


def _smaller(schema: Json, *, defaults: bool = True) -> Json:
    """Pydantic's schema without titles and descriptions of classes, `X or null` as a list of types. `defaults`: with
    those that say something; what we return is whole, so they say nothing there.
    """
    kept = {
        key: _value(key, value, defaults=defaults)
        for key, value in schema.items()
        if not _noise(key, value, defaults=defaults)
    }
    options = kept.get("anyOf")
    if isinstance(options, list) and len(cast("list[object]", options)) == 2:
        first, second = cast("list[Json]", options)
        if second == {"type": "null"} and isinstance(first.get("type"), str):
            del kept["anyOf"]
            kept = {**first, **kept, "type": [first["type"], "null"]}
            if "enum" in kept:
                kept["enum"] = [*cast("list[object]", kept["enum"]), None]
    return kept


def _without_docstring(schema: Json) -> Json:
    return {key: value for key, value in schema.items() if key != "description"}


def _noise(key: str, value: object, *, defaults: bool) -> bool:
    return (key == "title" and isinstance(value, str)) or (key == "default" and (value is None or not defaults))


def _value(key: str, value: object, *, defaults: bool) -> object:
    if key in ("properties", "$defs"):
        items = cast("dict[str, Json]", value).items()
        plain = {name: item if key == "properties" else _without_docstring(item) for name, item in items}
        return {name: _smaller(item, defaults=defaults) for name, item in plain.items()}
    if isinstance(value, dict):
        return _smaller(cast("Json", value), defaults=defaults)
    if key == "anyOf":
        return [_smaller(item, defaults=defaults) for item in cast("list[Json]", value)]
    return value
