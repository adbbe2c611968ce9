"""What may stand in a field, in words, from its JSON schema."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from pydantic import BaseModel

Json = Mapping[str, Any]

_PLAIN = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}

MANY = 2
"""More kinds than these are a list with commas."""


def kind(schema: Json, link: Callable[[str], str] = str, *, with_null: bool = False) -> str:
    """`link` turns the name of a model into what stands for it; `with_null` says where it may be null."""
    options = [option for option in schema.get("anyOf", schema.get("oneOf", [schema])) if option.get("type") != "null"]
    told = list(dict.fromkeys(_one(option, link) for option in options))
    null = " or null" if with_null and {"type": "null"} in schema.get("anyOf", ()) else ""
    return (", " if len(told) > MANY else " or ").join(told) + null


def _one(schema: Json, link: Callable[[str], str]) -> str:
    if "$ref" in schema:
        return link(str(schema["$ref"]).rpartition("/")[2])
    if "anyOf" in schema or "oneOf" in schema:
        return kind(schema, link)
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in cast("list[object]", schema["enum"]))
    match schema.get("type"):
        case "array":
            held = cast("Json", schema.get("items", {}))
            bare = "text" if held.get("type") == "string" and "enum" not in held else kind(held, link)
            return f"list of {bare}{_bounds(schema, 'minItems', 'maxItems', '')}"
        case "object":
            if "properties" in schema:
                return f"mapping with {', '.join(f'`{name}`' for name in cast('Json', schema['properties']))}"
            held = schema.get("additionalProperties") or next(iter(schema.get("patternProperties", {}).values()), None)
            return f"mapping to {kind(cast('Json', held), link)}" if isinstance(held, dict) and held else "mapping"
        case "string":
            return f"text{_bounds(schema, 'minLength', 'maxLength', ' characters')}"
        case str(name):
            return f"{_PLAIN.get(name, name)}{_range(schema)}"
        case _:
            return "anything"


def _range(schema: Json) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    over, under = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    bounds = {"from": least, "above": over, "to": most, "below": under}
    if least is None and over is None and most is not None:
        bounds = {"at most": most}
    told = [f"{word} {_number(value)}" for word, value in bounds.items() if value is not None]
    return f" {' '.join(told)}" if told else ""


def _number(value: float) -> str:
    return f"{int(value) if value == int(value) else value:,}"


def _bounds(schema: Json, least: str, most: str, what: str) -> str:
    low, high = schema.get(least, 0), schema.get(most)
    if high is None:
        return ""
    return f", {low:,} to {high:,}{what}" if low > 1 else f", at most {high:,}{what}"


def said(model: type[BaseModel], name: str, told: Mapping[str, str]) -> str:
    """What a field means. Raises `LookupError` if nobody has said it."""
    if name not in told:
        raise LookupError(f"write below {model.__name__}.{name} what it means, as a text in three quotes")
    return told[name]


def default(schema: Json, *, required: bool) -> str:
    if required:
        return "required"
    match schema.get("default"):
        case None:
            return ""
        case bool() as value:
            return f"`{str(value).lower()}`"
        case str() as value:
            return f"`{value}`" if value else ""
        case [] | {}:
            return ""
        case int() | float() as value:
            return f"`{_number(value).replace(',', '')}`"
        case _:
            return "see there"
