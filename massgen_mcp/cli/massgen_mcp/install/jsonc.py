"""JSON with comments and trailing commas, edited in place: what is not edited keeps every character. No I/O."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_INDENTED = re.compile(r"^([ \t]+)\S", re.MULTILINE)


class NotJson(ValueError):
    """The text is no JSON, or an object where one has to be is something else; says where."""


@dataclass(frozen=True, slots=True)
class _Member:
    key: str
    start: int
    value: "_Node"
    end: int
    """Behind its comma, if it has one."""


@dataclass(frozen=True, slots=True)
class _Node:
    start: int
    end: int
    value: Any
    members: Sequence[_Member] | None = None
    """Of an object."""

    def member(self, key: str) -> _Member | None:
        return next((member for member in self.members or () if member.key == key), None)


def loads(text: str) -> Any:  # noqa: ANN401 - any JSON
    """The value. An empty text is an empty object. Raises `NotJson`."""
    return _parsed(text).value if text.strip() else {}


def with_member(text: str, outer: str, key: str, value: object) -> str:
    """`text` in which the object `outer` of the top object has `key`, both made where they are missing.

    Raises `NotJson`.
    """
    if not text.strip():
        text = "{}\n"
    top = _object(_parsed(text), "the file")
    if (found := top.member(outer)) is None:
        return _added(text, top, outer, {key: value})
    inside = _object(found.value, outer)
    if (old := inside.member(key)) is None:
        return _added(text, inside, key, value)
    shown = _shown(text, value, _indent_at(text, old.start))
    return f"{text[: old.value.start]}{shown}{text[old.value.end :]}"


def without_member(text: str, outer: str, key: str) -> str:
    """`text` in which the object `outer` of the top object has no `key`. Raises `NotJson`."""
    found = _object(_parsed(text), "the file").member(outer) if text.strip() else None
    members = _object(found.value, outer).members if found else None
    for place, member in enumerate(members or ()):
        if member.key == key:
            start, end = member.start, member.end
            if member.end == member.value.end and place and members:  # the last one: the comma before it goes, too
                comma = members[place - 1].end - 1
                text, start, end = text[:comma] + text[comma + 1 :], start - 1, end - 1
            head, tail = text[:start], text[end:]
            alone = not head[head.rfind("\n") + 1 :].strip() and re.match(r"[ \t]*\r?\n|[ \t]*}", tail)
            return (head.rstrip(" \t").removesuffix("\n").removesuffix("\r") if alone else head) + tail
    return text


def _added(text: str, node: _Node, key: str, value: object) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = found[1] if (found := _INDENTED.search(text)) else "  "
    outside = _indent_at(text, node.start)
    inside = _indent_at(text, node.members[0].start) if node.members else ""
    if len(inside) <= len(outside):
        inside = outside + unit
    member = f"{newline}{inside}{json.dumps(key)}: {_shown(text, value, inside)}"
    brace = node.end - 1
    if not node.members:
        gap = text[node.start + 1 : brace].rstrip()
        return f"{text[: node.start + 1]}{gap}{member}{newline}{outside}{text[brace:]}"
    last = node.members[-1]
    before, behind = ("", ",") if last.end > last.value.end else (",", "")  # as the file ends its lists
    gap = text[last.value.end : brace].rstrip()
    return f"{text[: last.value.end]}{before}{gap}{member}{behind}{newline}{outside}{text[brace:]}"


def _shown(text: str, value: object, indent: str) -> str:
    unit = found[1] if (found := _INDENTED.search(text)) else "  "
    newline = "\r\n" if "\r\n" in text else "\n"
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"{newline}{indent}")


def _indent_at(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _object(node: _Node, name: str) -> _Node:
    if node.members is None:
        raise NotJson(f"{name} is not an object")
    return node


def _parsed(text: str) -> _Node:
    try:
        node = _value(text, _skipped(text, 0))
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    if (end := _skipped(text, node.end)) != len(text):
        raise _wrong(text, end)
    return node


def _value(text: str, start: int) -> _Node:
    match text[start : start + 1]:
        case "{":
            return _members(text, start)
        case "[":
            return _items(text, start)
        case '"':
            value, end = _string(text, start)
            return _Node(start, end, value)
        case _:
            if (found := _SCALAR.match(text, start)) is None:
                raise _wrong(text, start)
            return _Node(start, found.end(), json.loads(found[0]))


def _members(text: str, start: int) -> _Node:
    members: list[_Member] = []
    at = _skipped(text, start + 1)
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"' or (members and members[-1].end == members[-1].value.end):
            raise _wrong(text, at)
        key, colon = _string(text, at)
        colon = _skipped(text, colon)
        if text[colon : colon + 1] != ":":
            raise _wrong(text, colon)
        value = _value(text, _skipped(text, colon + 1))
        comma = _skipped(text, value.end)
        end = comma + 1 if text[comma : comma + 1] == "," else value.end
        members.append(_Member(key, at, value, end))
        at = _skipped(text, end)
    return _Node(start, at + 1, {member.key: member.value.value for member in members}, members)


def _items(text: str, start: int) -> _Node:
    items: list[Any] = []
    at, complete = _skipped(text, start + 1), True
    while text[at : at + 1] != "]":
        if not complete:
            raise _wrong(text, at)
        item = _value(text, at)
        items.append(item.value)
        at = _skipped(text, item.end)
        complete = text[at : at + 1] == ","
        at = _skipped(text, at + 1) if complete else at
    return _Node(start, at + 1, items)


def _string(text: str, start: int) -> tuple[str, int]:
    try:
        return json.JSONDecoder().raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise _wrong(text, error.pos) from error


def _skipped(text: str, start: int) -> int:
    found = _SPACE.match(text, start)
    return found.end() if found else start


def _wrong(text: str, place: int) -> NotJson:
    line = text.count("\n", 0, place) + 1
    return NotJson(f"line {line} is no JSON")
