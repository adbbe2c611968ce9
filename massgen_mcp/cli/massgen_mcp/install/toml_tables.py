"""A table of a TOML file, edited in place: what is not edited keeps every character. No I/O.

The caller compares what the file said before and says afterwards, and refuses what is not thought of here.
"""

import tomllib
from collections.abc import Mapping, MutableMapping
from typing import Any, cast

import tomlkit
from tomlkit.exceptions import TOMLKitError


class NotToml(ValueError):
    """The text is no TOML; says where."""


def loads(text: str) -> dict[str, Any]:
    """Raises `NotToml`."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise NotToml(str(error)) from error


def with_member(text: str, outer: str, key: str, value: Mapping[str, object]) -> str:
    """`text` with the table `[outer.key]`: an earlier one brought up to date, else at the end. Raises `NotToml`."""
    document = _document(text)
    earlier = _tables(document, outer).get(key)
    if earlier is not None:
        earlier.update({field: _inline(each) for field, each in value.items() if earlier.get(field) != each})
        return tomlkit.dumps(document)
    newline = _newline(text)
    shown = tomlkit.dumps({outer: {key: {field: _inline(each) for field, each in value.items()}}}).replace(
        "\n", newline
    )
    gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
    return f"{text}{gap}{shown}"


def without_member(text: str, outer: str, key: str) -> str:
    """`text` without the table `[outer.key]`, but with comments before the next one. Raises `NotToml`."""
    document = _document(text)
    del _tables(document, outer)[key]
    left = tomlkit.dumps(document)
    lines, kept = text.splitlines(keepends=True), left.splitlines(keepends=True)
    begin = next((at for at, pair in enumerate(zip(lines, kept, strict=False)) if pair[0] != pair[1]), len(kept))
    end = begin + len(lines) - len(kept)
    if lines[:begin] + lines[end:] != kept:  # it stands in several places
        return left
    if end == len(lines):
        return "".join(lines[:begin]).rstrip() + _newline(text) if begin else ""
    while lines[end - 1].lstrip()[:1] in ("", "#"):
        end -= 1
    return "".join(lines[:begin] + lines[end:])


def _document(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except (TOMLKitError, RecursionError) as error:
        raise NotToml(str(error)) from error


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _tables(document: Mapping[str, Any], outer: str) -> MutableMapping[str, Any]:
    return cast("MutableMapping[str, Any]", document.get(outer, {}))


def _inline(value: object) -> object:
    """A table in one line, as the others of an entry are."""
    if not isinstance(value, dict):
        return value
    table = cast("MutableMapping[str, object]", tomlkit.inline_table())
    table.update({key: _inline(each) for key, each in cast("dict[str, object]", value).items()})
    return table
