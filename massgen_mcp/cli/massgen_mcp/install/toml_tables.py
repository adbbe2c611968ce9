"""A table of a TOML file, edited in place: what is not edited keeps every character. No I/O.

The text is edited line by line, which cannot know every way to write a table; so the caller compares what the file said
before and says afterwards.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, cast

_HEADER = re.compile(r"\s*\[")
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


class NotToml(ValueError):
    """The text is no TOML; says where."""


def loads(text: str) -> dict[str, Any]:
    """Raises `NotToml`."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise NotToml(str(error)) from error


def with_table(text: str, outer: str, key: str, value: Mapping[str, object]) -> str:
    """`text` with the table `[outer.key]`, in the place of an earlier one or at the end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    shown = newline.join(_shown(outer, key, value)) + newline
    before, found, after = _around(text, outer, key)
    if found:
        return before + shown + after
    gap = "" if not before.strip() else newline if before.endswith("\n") else newline * 2
    return f"{before}{gap}{shown}"


def without_table(text: str, outer: str, key: str) -> str:
    """`text` without the table `[outer.key]` and those below it."""
    before, found, after = _around(text, outer, key)
    if not found:
        return text
    return (
        before.rstrip() + ("\r\n" if "\r\n" in text else "\n")
        if before.strip() and not after.strip()
        else before + after
    )


def _around(text: str, outer: str, key: str) -> tuple[str, bool, str]:
    """What stands before the first line of the table, whether there is one, and what else there is behind it."""
    name = rf"(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')"
    ours = re.compile(rf"\s*\[\s*{re.escape(outer)}\s*\.\s*{name}\s*[.\]]")
    before: list[str] = []
    after: list[str] = []
    found = inside = False
    pending: list[str] = []
    at = 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        is_ours = ours.match(line) is not None
        if _HEADER.match(line) and (not (is_ours or inside) or _is_complete(text[: at - len(line)])):
            inside = is_ours
            found |= inside
            (after if found else before).extend(pending)
            pending = []
        if not inside:
            (after if found else before).append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            pending.append(line)  # of the next table, unless ours goes on behind it
        else:
            pending = []
    after.extend(pending)
    return "".join(before), found, "".join(after)


def _is_complete(text: str) -> bool:
    """Whether no value goes on behind it, such as a string of several lines."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _shown(outer: str, key: str, value: Mapping[str, object]) -> list[str]:
    return [f"[{outer}.{_name(key)}]", *(f"{_name(field)} = {_literal(each)}" for field, each in value.items())]


def _name(key: str) -> str:
    return key if _PLAIN.fullmatch(key) else _quoted(key)


def _literal(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case list():
            return f"[{', '.join(map(_literal, cast('list[object]', value)))}]"
        case dict():
            fields = cast("dict[str, object]", value)
            return f"{{ {', '.join(f'{_name(key)} = {_literal(each)}' for key, each in fields.items())} }}"
        case _:
            return _quoted(str(value))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
