"""How models write calls into text, form by form: from a place in the text to the calls that stand there. Pure.

Must not know which tools there are, nor what is meant and what is quoted.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import cast

from massgen_mcp.events.parts import WrittenForm

_JSON = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"\s*")
_OPEN_FENCE = re.compile(r"(```|~~~)[ \t]*(?:json5?|tool_calls?|tool_code|xml|text)?[ \t]*\r?\n")
_TAG = re.compile(r"<(tool_calls?|tools|function_calls?|functioncall|tool_use)>\s*", re.IGNORECASE)
_FUNCTION = re.compile(r'<function=([\w.-]+)>\s*|<invoke name="([\w.-]+)">\s*')
_PARAMETER = re.compile(r'(?:<parameter=([\w.-]+)>|<parameter name="([\w.-]+)">)(.*?)</parameter>\s*', re.DOTALL)
_PYTHON_TAG = re.compile(r"<\|python_tag\|>\s*")
_MISTRAL = re.compile(r"\[TOOL_CALLS\]\s*")
_CALLED = re.compile(r"((?:functions\.)?[A-Za-z_]\w*)[ \t]*\(\s*")
_ARGUMENT = re.compile(
    r"""([A-Za-z_]\w*)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|-?\d+(?:\.\d+)?|True|False|None|true|false|null)\s*"""
    r"""(?:,\s*|(?=\)))""",
    re.DOTALL,
)
NAMES = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "params", "input", "action_input", "tool_input")

_Calls = list[tuple[str, dict[str, object]]]
_Read = tuple[_Calls, int]
"""Calls, and where the text goes on."""


def expression(text: str, at: int) -> tuple[_Read | None, WrittenForm]:
    """What is written at this place: its calls, and in which form."""
    if fence := _OPEN_FENCE.match(text, at):
        return _closed(_any_call, text, fence.end(), fence[1]), "fenced_json"
    if tag := _TAG.match(text, at):
        return _closed(_any_call, text, tag.end(), f"</{tag[1]}>"), "tool_call_tag"
    if _FUNCTION.match(text, at):
        return _function_tag(text, at), "function_tag"
    if tag := _PYTHON_TAG.match(text, at):
        return _any_call(text, tag.end()), "python_tag"
    if tag := _MISTRAL.match(text, at):
        return _any_call(text, tag.end()), "tool_call_tag"
    if _CALLED.match(text, at):
        return _called(text, at), "function_call"
    if text[at] == "[" and (listed := _read_list(text, at)):
        return listed, "python_tag"
    return _json_calls(text, at), "json"


def _any_call(text: str, at: int) -> _Read | None:
    """One or several calls in any form that may stand within a tag."""
    found: _Calls = []
    while at < len(text):
        if _FUNCTION.match(text, at):
            read = _function_tag(text, at)
        elif _CALLED.match(text, at):
            read = _called(text, at)
        else:
            read = _json_calls(text, at)
        if read is None:
            break
        found += read[0]
        at = skip(text, read[1])
    return (found, at) if found else None


def _closed(inner: Callable[[str, int], _Read | None], text: str, at: int, closing: str) -> _Read | None:
    """What stands before `closing`, or before the end of the text: servers swallow the tag that ends a reply."""
    read = inner(text, at)
    if read is None:
        return None
    calls, at = read
    at = skip(text, at)
    if text[at : at + len(closing)].lower() == closing.lower():
        return calls, at + len(closing)
    return (calls, at) if at >= len(text) else None


def _function_tag(text: str, at: int) -> _Read | None:
    """`<function=NAME>{…}</function>`, or with parameters in tags of their own."""
    opened = _FUNCTION.match(text, at)
    if opened is None:
        return None
    read = _arguments(text, opened.end(), _PARAMETER, lambda one: (one[1] or one[2], one[3].strip("\n")))
    if read is None:
        return None
    arguments, at = read
    closing = "</function>" if opened[1] else "</invoke>"
    at = skip(text, at)
    if text.startswith(closing, at):
        at += len(closing)
    elif at < len(text):
        return None
    return [(opened[1] or opened[2], arguments)], at


def _arguments(
    text: str, at: int, form: re.Pattern[str], read: Callable[[re.Match[str]], tuple[str, object]]
) -> tuple[dict[str, object], int] | None:
    """All in one JSON object, or one by one in `form`, of which `read` gives name and value."""
    if text[at : at + 1] == "{":
        return _object_at(text, at)
    arguments: dict[str, object] = {}
    while one := form.match(text, at):
        name, value = read(one)
        arguments[name], at = value, one.end()
    return arguments, at


def _called(text: str, at: int) -> _Read | None:
    """`functions.NAME({…})`, or `NAME(key="value")`."""
    opened = _CALLED.match(text, at)
    if opened is None:
        return None
    read = _arguments(text, opened.end(), _ARGUMENT, lambda one: (one[1], _literal(one[2])))
    if read is None:
        return None
    arguments, at = read
    at = skip(text, at)
    return ([(opened[1], arguments)], at + 1) if text[at : at + 1] == ")" else None


def _read_list(text: str, at: int) -> _Read | None:
    """`[NAME(key="value"), …]`, as Llama writes calls."""
    found: _Calls = []
    at = skip(text, at + 1)
    while read := _called(text, at):
        found += read[0]
        at = skip(text, read[1])
        if text[at : at + 1] == ",":
            at = skip(text, at + 1)
    return (found, at + 1) if found and text[at : at + 1] == "]" else None


def _json_calls(text: str, at: int) -> _Read | None:
    if text[at : at + 1] not in ("{", "["):
        return None
    try:
        value, end = cast("tuple[object, int]", _JSON.raw_decode(text, at))
    except (ValueError, RecursionError):
        return None
    calls = list(_calls_in(value))
    return (calls, end) if calls else None


def _object_at(text: str, at: int) -> tuple[dict[str, object], int] | None:
    try:
        value, end = cast("tuple[object, int]", _JSON.raw_decode(text, at))
    except (ValueError, RecursionError):
        return None
    return (cast("dict[str, object]", value), end) if isinstance(value, dict) else None


def _calls_in(value: object, depth: int = 0) -> Iterator[tuple[str, dict[str, object]]]:
    """The calls that a JSON value stands for, in the ways models write them."""
    if depth > 3:
        return
    if isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _calls_in(item, depth + 1)
    if not isinstance(value, dict):
        return
    yield from _call_in(cast("dict[str, object]", value), depth)


def _call_in(members: dict[str, object], depth: int) -> Iterator[tuple[str, dict[str, object]]]:
    for wrapper in ("tool_calls", "tool_call", "function_call", "function"):
        if isinstance(members.get(wrapper), (list, dict)):
            yield from _calls_in(members[wrapper], depth + 1)
            return
    named = next((key for key in NAMES if isinstance(members.get(key), str)), None)
    if named is not None:
        given = next((key for key in _ARGUMENTS if key in members), None)
        rest: object = {key: item for key, item in members.items() if key not in (named, "type", "id")}
        arguments = _as_object(rest if given is None else members[given])
        if arguments is not None:
            yield str(members[named]), arguments
    elif len(members) == 1:
        ((name, inner),) = members.items()
        if isinstance(inner, dict):
            yield name, cast("dict[str, object]", inner)


def _as_object(value: object) -> dict[str, object] | None:
    """Arguments; OpenAI's form has them as JSON text."""
    if isinstance(value, str):
        try:
            value = _JSON.decode(value)
        except (ValueError, RecursionError):
            return None
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def _literal(text: str) -> object:
    if text[0] == '"':
        with suppress(ValueError):
            return _JSON.decode(text)
    if text[0] in "\"'":
        plain = {"n": "\n", "t": "\t", "r": "\r"}
        return re.sub(r"\\(.)", lambda found: plain.get(found[1], found[1]), text[1:-1], flags=re.DOTALL)
    return json.loads({"True": "true", "False": "false", "None": "null"}.get(text, text))


def skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
