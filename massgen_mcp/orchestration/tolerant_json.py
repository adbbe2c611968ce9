"""JSON as models write it when they write it nearly right: in single quotes, with raw newlines, fenced, encoded twice.

Pure. It never completes what ends early: a call that was cut off may have meant anything.
"""

import ast
import json
import re
from typing import cast

MAX_MENDED = 50_000
"""Characters of a text that is no JSON and may still be read. Every start of a block is tried, so it must be quick."""
MAX_DEPTH = 40
_LAX = json.JSONDecoder(strict=False)
_STRUCTURE = re.compile(r"""["'{}\[\]]""")
_END_OF_STRING = {quote: re.compile(rf"(?:[^{quote}\\]++|\\.)*+{quote}", re.DOTALL) for quote in "\"'"}
_OPENING_QUOTE_AFTER = frozenset("{[,:(")
_AROUND = re.compile(
    r"\A(?:\s|```\w*\n?|~~~\w*\n?|<\|[^<>\n]{0,40}\|>|</?\w*tool\w*>)+|(?:\s|```|~~~|<\|[^<>\n]{0,40}\|>|</?\w+>|;)+\Z",
    re.IGNORECASE,
)
"""Fences, tags and tokens around arguments."""


def read_value(text: str, at: int) -> tuple[object, int] | None:
    """Return the object or list that begins at this place, and where the text goes on; None if none is whole there."""
    try:
        return cast("tuple[object, int]", _LAX.raw_decode(text, at))
    except (ValueError, RecursionError):
        pass
    end = find_end(text, at)
    if end is None:
        return None
    value = _mend(text[at:end])
    if value is None:
        return None
    return (value, end)


def read_object(text: str) -> dict[str, object] | None:
    """Return the one object that a whole text is meant as, also where it is encoded twice; None if it is none."""
    value: object = None
    body = _AROUND.sub("", text)
    for _ in range(3):
        try:
            value = _LAX.decode(body)
        except (ValueError, RecursionError):
            found = read_value(body, 0)
            value = None
            if found is not None and found[1] == len(body):
                value = found[0]
        if not isinstance(value, str):
            break
        body = _AROUND.sub("", value)
    if not isinstance(value, dict):
        return None
    return cast("dict[str, object]", value)


def as_object(value: object) -> dict[str, object] | None:
    """Return arguments as an object; OpenAI's form has them as JSON text."""
    if isinstance(value, str):
        return read_object(value)
    if not isinstance(value, dict):
        return None
    return cast("dict[str, object]", value)


def find_end(text: str, at: int) -> int | None:
    """Return the place behind the bracket that closes the one at `at`; None where the text ends before it."""
    depth, place = 0, at
    limit = min(len(text), at + MAX_MENDED)
    while (found := _STRUCTURE.search(text, place, limit)) is not None:
        character, place = found[0], found.end()
        if character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
        elif character == '"' or _is_opening(text, found.start()):
            closed = _END_OF_STRING[character].match(text, place, limit)
            if closed is None:
                return None
            place = closed.end()
        if depth == 0:
            return place
        if depth > MAX_DEPTH:
            return None
    return None


def _is_opening(text: str, quote: int) -> bool:
    """Whether a single quote begins a text; else it is an apostrophe."""
    before = quote - 1
    while before >= 0 and text[before].isspace():
        before -= 1
    return before < 0 or text[before] in _OPENING_QUOTE_AFTER


def _mend(text: str) -> object | None:
    """Read a balanced piece that is no JSON: as Python's literal, else by repairing commas and quotes."""
    try:
        value: object = ast.literal_eval(text)
        json.dumps(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        pass
    else:
        return value
    from json_repair import repair_json  # most models never need it

    repaired = cast("object", repair_json(text, return_objects=True, skip_json_loads=True))
    if not isinstance(repaired, dict | list) or not repaired:
        return None
    written = json.dumps(repaired, ensure_ascii=False)
    invented = '""' in written and '""' not in text and "''" not in text
    if invented or _words(written) != _words(text):
        return None
    return cast("object", repaired)


def _words(text: str) -> str:
    """Return the letters and digits of a JSON text, to see that a repair adds and loses none."""
    plain = re.sub(r"\\.", "", text)
    return re.sub(r"[\W_]+", "", plain).casefold().replace("none", "null")
