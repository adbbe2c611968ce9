"""JSON with comments and trailing commas, edited in place: what is not edited keeps every character. No I/O.

A `ValueError` says where the text is no JSON, or what is no object that has to be one.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_GAP = r"(?>\s|//[^\n]*|/\*.*?\*/)*+"
_SPACE = re.compile(_GAP, re.DOTALL)
_BESIDE_JSON = re.compile(rf"""("(?:[^"\\]|\\.)*"|[\[{{]{_GAP},)|//[^\n]*|/\*.*?\*/|,(?={_GAP}[\]}}])""", re.DOTALL)
"""What stays: texts, and a comma behind nothing, which is wrong. What goes: comments, and the last comma."""
_INDENTED = re.compile(r"^([ \t]+)\S", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Member:
    key: str
    start: int
    value: int
    """Where its value begins ..."""
    stop: int
    """... and ends."""
    end: int
    """Behind its comma, if it has one."""


@dataclass(frozen=True, slots=True)
class _Object:
    start: int
    end: int
    members: Sequence[_Member]

    def member(self, key: str) -> _Member | None:
        return next((member for member in self.members if member.key == key), None)


def loads(text: str) -> Any:  # noqa: ANN401 - any JSON
    """The value. An empty text is an empty object. Raises `ValueError`."""
    return _parsed(text)[0] if text.strip() else {}


def with_member(text: str, outer: str, key: str, value: object) -> str:
    """`text` in which the object `outer` of the top object has `key`, both made where they are missing.

    Raises `ValueError`.
    """
    if not text.strip():
        text = "{}\n"
    _, plain = _parsed(text)
    top = _object(text, plain, _skipped(text, 0), "the file")
    if (found := top.member(outer)) is None:
        return _added(text, top, outer, {key: value})
    inside = _object(text, plain, found.value, outer)
    if (old := inside.member(key)) is None:
        return _added(text, inside, key, value)
    shown = _indented_json(text, value, _indent_at(text, old.start))
    return f"{text[: old.value]}{shown}{text[old.stop :]}"


def without_member(text: str, outer: str, key: str) -> str:
    """`text` in which the object `outer` of the top object has no `key`. Raises `ValueError`."""
    if not text.strip():
        return text
    _, plain = _parsed(text)
    found = _object(text, plain, _skipped(text, 0), "the file").member(outer)
    members = _object(text, plain, found.value, outer).members if found else ()
    for place, member in enumerate(members):
        if member.key == key:
            start, end = member.start, member.end
            if member.end == member.stop and place:  # the last one: the comma before it goes, too
                comma = members[place - 1].end - 1
                text, start, end = text[:comma] + text[comma + 1 :], start - 1, end - 1
            head, tail = text[:start], text[end:]
            alone = not head[head.rfind("\n") + 1 :].strip() and re.match(r"[ \t]*\r?\n|[ \t]*}", tail)
            return (head.rstrip(" \t").removesuffix("\n").removesuffix("\r") if alone else head) + tail
    return text


def _added(text: str, node: _Object, key: str, value: object) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = found[1] if (found := _INDENTED.search(text)) else "  "
    outside = _indent_at(text, node.start)
    inside = _indent_at(text, node.members[0].start) if node.members else ""
    if len(inside) <= len(outside):
        inside = outside + unit
    member = f"{newline}{inside}{json.dumps(key)}: {_indented_json(text, value, inside)}"
    brace = node.end - 1
    if not node.members:
        gap = text[node.start + 1 : brace].rstrip()
        return f"{text[: node.start + 1]}{gap}{member}{newline}{outside}{text[brace:]}"
    last = node.members[-1]
    before, behind = ("", ",") if last.end > last.stop else (",", "")  # as the file ends its lists
    gap = text[last.stop : brace].rstrip()
    return f"{text[: last.stop]}{before}{gap}{member}{behind}{newline}{outside}{text[brace:]}"


def _indented_json(text: str, value: object, indent: str) -> str:
    unit = found[1] if (found := _INDENTED.search(text)) else "  "
    newline = "\r\n" if "\r\n" in text else "\n"
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"{newline}{indent}")


def _indent_at(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _parsed(text: str) -> tuple[Any, str]:
    """The value, and the text as mere JSON, in which everything stands where it stood. Raises `ValueError`."""
    plain = _BESIDE_JSON.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)
    try:
        return json.loads(plain), plain
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno} is no JSON") from error
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _object(text: str, plain: str, start: int, name: str) -> _Object:
    """The one that begins there. Raises `ValueError`."""
    if text[start] != "{":
        raise ValueError(f"{name} is not an object")
    members: list[_Member] = []
    at, decoder = _skipped(text, start + 1), json.JSONDecoder()
    while text[at] != "}":
        key, colon = decoder.raw_decode(plain, at)
        value = _skipped(text, _skipped(text, colon) + 1)
        _, stop = decoder.raw_decode(plain, value)
        comma = _skipped(text, stop)
        end = comma + 1 if text[comma] == "," else stop
        members.append(_Member(key, at, value, stop, end))
        at = _skipped(text, end)
    return _Object(start, at + 1, members)


def _skipped(text: str, start: int) -> int:
    found = _SPACE.match(text, start)
    return found.end() if found else start
