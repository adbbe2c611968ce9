"""What a server says of a tool, made fit for every provider: bounded, and of well-known keywords only. Pure.

A provider refuses the whole request for one schema that it does not like, so nothing of a server is passed on as it is.
"""

import json
import re
from collections.abc import Mapping
from typing import cast

from massgen_mcp.backends.base import JsonObject, JsonValue
from massgen_mcp.tools.base import well_formed

MAX_DESCRIPTION = 1000
MAX_SCHEMA_CHARACTERS = 12_000
MAX_DEPTH = 8
MAX_PARTS = 300
"""Schemas within one schema, after references are resolved."""
MAX_VALUES = 100
_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
_NUMBERS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
MAX_NAME = 64


def plain_name(name: str) -> str:
    """The name with what every provider takes in one."""
    return _NOT_IN_NAMES.sub("_", name)[:MAX_NAME] or "tool"


def plain_text(text: str, limit: int) -> str:
    """Text of a server without control characters, at most `limit` characters of it."""
    readable = "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in well_formed(text))
    return readable if len(readable) <= limit else f"{readable[: limit - 1]}…"


def plain_schema(schema: Mapping[str, object]) -> JsonObject:
    """The schema of a tool's arguments, always that of an object; without what would make it too long."""
    for described in (MAX_DESCRIPTION, 0):
        made = _Maker(schema, described).make(schema, 0, ())
        is_of_object = made.get("type") == "object" and isinstance(made.get("properties"), dict)
        if is_of_object and len(json.dumps(made)) <= MAX_SCHEMA_CHARACTERS:
            return made
    return {"type": "object", "properties": {}}


class _Maker:
    def __init__(self, whole: Mapping[str, object], described: int) -> None:
        """`described`: characters of a description."""
        self._whole = whole
        self._described = described
        self._left = MAX_PARTS

    def make(self, schema: object, depth: int, within: tuple[str, ...]) -> JsonObject:
        """The part in plain words; {} for one that cannot be told, which allows everything. `within`: references that
        are being resolved.
        """
        self._left -= 1
        if not isinstance(schema, dict) or depth > MAX_DEPTH or self._left < 0:
            return {}
        part = cast("dict[str, object]", schema)
        reference = part.get("$ref")
        if isinstance(reference, str):
            return {} if reference in within else self.make(self._resolved(reference), depth, (*within, reference))
        made = _scalars(part, self._described)
        if made.get("type") == "object" or "properties" in part:
            made |= self._object(part, depth, within)
        if made.get("type") == "array":
            made["items"] = self.make(part.get("items"), depth + 1, within)
        for key in _ALTERNATIVES:
            options = part.get(key)
            if isinstance(options, list) and options:
                listed = cast("list[object]", options)[:MAX_VALUES]
                made[key] = [self.make(option, depth + 1, within) for option in listed]
        return made

    def _object(self, part: Mapping[str, object], depth: int, within: tuple[str, ...]) -> JsonObject:
        found = part.get("properties")
        given = cast("dict[str, object]", found) if isinstance(found, dict) else {}
        names = [name for name in given if _fit_for_property(name)][:MAX_VALUES]
        properties: JsonObject = {name: self.make(given[name], depth + 1, within) for name in names}
        made: JsonObject = {"type": "object", "properties": properties}
        required = part.get("required")
        if isinstance(required, list):
            wanted = [name for name in cast("list[object]", required) if isinstance(name, str) and name in properties]
            made["required"] = [*dict.fromkeys(wanted)]
        more = part.get("additionalProperties")
        if isinstance(more, bool):
            made["additionalProperties"] = more
        return made

    def _resolved(self, reference: str) -> object:
        """What a reference within this schema names; nothing else is looked up."""
        if not reference.startswith("#/"):
            return None
        here: object = self._whole
        for step in reference[2:].split("/")[:MAX_DEPTH]:
            here = cast("dict[str, object]", here).get(step) if isinstance(here, dict) else None
        return here


def _scalars(part: Mapping[str, object], described: int) -> JsonObject:
    made: JsonObject = {}
    kind = part.get("type")
    if isinstance(kind, str) and kind in _TYPES:
        made["type"] = kind
    elif isinstance(kind, list):
        kinds = [each for each in cast("list[object]", kind) if isinstance(each, str) and each in _TYPES]
        made["type"] = next((each for each in kinds if each != "null"), "null") if kinds else "string"
    if described and isinstance(text := part.get("description"), str):
        made["description"] = plain_text(text, described)
    values = part.get("enum")
    if isinstance(values, list):
        kept = [value for value in cast("list[object]", values) if isinstance(value, str | int | float | bool)]
        if kept and len(kept) == len(cast("list[object]", values)) <= MAX_VALUES:
            made["enum"] = cast("list[JsonValue]", [well_formed(v) if isinstance(v, str) else v for v in kept])
    for key in _NUMBERS:
        number = part.get(key)
        if isinstance(number, int) and not isinstance(number, bool) and abs(number) < 10**12:
            made[key] = number
    return made


def _fit_for_property(name: str) -> bool:
    return 0 < len(name) <= MAX_NAME and name.isprintable() and well_formed(name) == name
