"""What may stand in a field, in words, from its JSON schema."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from pydantic import BaseModel

Json = Mapping[str, Any]

_PLAIN = {"string": "text", "boolean": "boolean"}

MANY = 2
"""More kinds than these are a list with commas."""
LONG = 60
"""A default of more characters has no room in a table."""


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
            return f"list of {bare}{_most(schema, 'maxItems')}"
        case "object":
            if "properties" in schema:
                return f"mapping with {', '.join(f'`{name}`' for name in cast('Json', schema['properties']))}"
            held = schema.get("additionalProperties") or next(iter(schema.get("patternProperties", {}).values()), None)
            return (
                f"mapping of names to {kind(cast('Json', held), link)}"
                if isinstance(held, dict) and held
                else "mapping"
            )
        case "string":
            return f"text{_most(schema, 'maxLength')}"
        case str(name):
            return f"{_PLAIN.get(name, name)}{_range(schema)}"
        case _:
            return "anything"


def _range(schema: Json) -> str:
    """From a number to another, as in ` 0-60`, or ` >0-60` without the first one."""
    over, least = schema.get("exclusiveMinimum"), schema.get("minimum")
    under, most = schema.get("exclusiveMaximum"), schema.get("maximum")
    low = f">{_number(over)}" if over is not None else "" if least is None else _number(least)
    high = f"<{_number(under)}" if under is not None else "" if most is None else _number(most)
    if not high:
        return f" {low if over is not None else f'≥{low}'}" if low else ""
    return f" {low}-{high}" if low else f" ≤{high}"


def _number(value: float) -> str:
    return f"{int(value) if value == int(value) else value:,}"


def _most(schema: Json, name: str) -> str:
    """How many characters or entries it may have."""
    return f" ≤{schema[name]:,}" if name in schema else ""


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
            return "in the schema" if len(value) > LONG else f"`{value}`" if value else ""
        case [] | {}:
            return ""
        case int() | float() as value:
            return f"`{_number(value).replace(',', '')}`"
        case _:
            return "see there"
