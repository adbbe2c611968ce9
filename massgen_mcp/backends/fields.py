"""Checked access to the few members that we use of an event's JSON.

A server may send anything. What is missing, or null, is nothing; what is of another type than its API says is an error,
which becomes a "bad_reply". Knows no provider.
"""

import json
from collections.abc import Mapping, Sequence
from typing import cast

from massgen_mcp.backends.base import JsonObject

Fields = Mapping[str, object]


def parsed(data: str) -> object:
    """The JSON of an event. Raises `ValueError` or `RecursionError` for what is none."""
    return json.loads(data)


def fields_of(value: object, what: str) -> Fields:
    """`value` as an object. Raises `TypeError`, with the name of `what`, if it is none."""
    if isinstance(value, dict):
        return cast("dict[str, object]", value)
    raise _other_type(what, value, "an object")


def fields_or_none(value: object) -> Fields:
    """`value` as an object; one with nothing in it for anything else."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def objects_in(fields: Fields, name: str) -> Sequence[Fields]:
    """The objects of a list; none where there is no list. Raises `TypeError` for anything else."""
    value = fields.get(name)
    if not value:
        return ()
    if isinstance(value, list):
        return [fields_of(item, name) for item in cast("list[object]", value)]
    raise _other_type(name, value, "a list")


def text_in(fields: Fields, name: str) -> str:
    """A text, which may be missing: then it is empty. Raises `TypeError` for what is no text."""
    value = fields.get(name)
    if isinstance(value, str):
        return value
    if not value:
        return ""
    raise _other_type(name, value, "text")


def needed_text(fields: Fields, name: str) -> str:
    """A text that must be there. Raises `TypeError` if it is not, or no text."""
    value = fields.get(name)
    if isinstance(value, str):
        return value
    raise _other_type(name, value, "text")


def needed_int(fields: Fields, name: str) -> int:
    """A whole number that must be there. Raises `TypeError` if it is not, or something else."""
    value = fields.get(name)
    if isinstance(value, int):
        return value
    raise _other_type(name, value, "a number")


def json_object(fields: Fields) -> JsonObject:
    """The same object as data to be sent back."""
    return cast("JsonObject", fields)


def _other_type(name: str, value: object, wanted: str) -> TypeError:
    return TypeError(f"{name} is {type(value).__name__}, not {wanted}")
