"""Actions that a model wrote as text, because it cannot call tools or does not: its calls, and its vote. Pure.

A call counts when it is the whole reply or its last block. Whether it is only quoted is judged by the texts that the
model was shown.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from massgen_mcp.backends.base import AssistantMessage, Message
from massgen_mcp.events import WrittenForm
from massgen_mcp.markers import materials

MAX_CALLS = 32
_MOST_STARTS = 32
"""So many lines from the first one, and from the last one, that may begin the last block are tried."""
_ATTEMPT_CHARACTERS = 300
"""A line that begins like a call and names a tool within so many characters is meant as one, readable or not."""

_JSON = json.JSONDecoder(strict=False)
_STARTS = re.compile(r"^[ \t]*(?=[{\[<]|```|~~~|(?:functions\.)?\w+[ \t]*\()", re.MULTILINE)
_END_TOKENS = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|call|>", "<|endoftext|>", "<|end_of_text|>"),
    *("</s>", "<end_of_turn>"),
)
"""They end a reply, and some servers let them through."""
_SPACE = re.compile(r"\s*")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
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
_NAMES = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "params", "input", "action_input", "tool_input")

_Calls = list[tuple[str, dict[str, object]]]
_Read = tuple[_Calls, int]
"""Calls, and where the text goes on."""


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """`arguments` is the JSON text of an object."""

    name: str
    arguments: str
    form: WrittenForm


@dataclass(frozen=True, slots=True)
class Writing:
    """What a reply's text amounts to. `unreadable`: its last block is meant as a call, and is none."""

    calls: tuple[WrittenCall, ...] = ()
    unreadable: bool = False


def read_calls(text: str, names: Collection[str], shown: Sequence[str] = ()) -> Writing:
    """The calls of tools with one of `names` that `text` ends with; none if they stand in a text that was `shown`."""
    body = _without_end_tokens(text)
    starts = [start.end() for start in _STARTS.finditer(body)]
    if len(starts) > 2 * _MOST_STARTS:
        starts = [*starts[:_MOST_STARTS], *starts[-_MOST_STARTS:]]
    fences = [fence.start() for fence in _FENCE.finditer(body)]
    attempted = False
    for start in starts:
        line = body.rfind("\n", 0, start) + 1
        if sum(fence < line for fence in fences) % 2:
            continue  # within a block of something else
        if calls := _block(body, start, names):
            return Writing() if _quoted(calls, shown) else Writing(calls)
        up_to_the_end = body[-1] in "}>)]`" or not body[:start].strip()
        attempted = attempted or (up_to_the_end and _is_attempt(body[start : start + _ATTEMPT_CHARACTERS], names))
    return Writing(unreadable=attempted and not _quoted_text(body[starts[0] :], shown))


def read_vote(text: str, names: Collection[str], shown: Sequence[str] = ()) -> tuple[str, str] | None:
    """The name that a line of its own votes for, such as `vote: agent2`, and the rest of the text.

    None where there is no such line, where two lines differ, or where the line may be quoted from a text that was
    `shown`.
    """
    choices = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    vote = re.compile(
        rf"[ \t*_`#\"'-]*(?:(?:my|final)[ \t]+)?vote(?:[ \t]+for)?[ \t*_`]*[:=]?"
        rf"[ \t*_`\"'<]*({choices})[ \t*_`\"'>.!]*",
        re.IGNORECASE,
    )
    lines = text.strip().splitlines()
    votes = [(place, found) for place, line in enumerate(lines) if (found := vote.fullmatch(line.rstrip()))]
    if not choices or not votes or len({found[1].lower() for _, found in votes}) > 1:
        return None
    rest = "\n".join(line for place, line in enumerate(lines) if place not in {place for place, _ in votes}).strip()
    line = lines[votes[0][0]].strip().casefold()
    if rest and any(line in (other.strip().casefold() for other in given.splitlines()) for given in shown):
        return None
    return next(name for name in names if name.lower() == votes[0][1][1].lower()), rest


def shown_texts(messages: Iterable[Message]) -> list[str]:
    """What a model was shown of others' making: answers, reasons, results; not the caller's own words."""
    texts = [message.text for message in messages if not isinstance(message, AssistantMessage)]
    return [found.text for text in texts for found in materials(text) if found.kind not in ("question", "message")]


def _without_end_tokens(text: str) -> str:
    text = text.rstrip()
    while token := next(filter(text.endswith, _END_TOKENS), None):
        text = text.removesuffix(token).rstrip()
    return text


# -- one block --------------------------------------------------------------------------------------------------------


def _block(text: str, start: int, names: Collection[str]) -> tuple[WrittenCall, ...]:
    """The calls that `text` consists of from `start` to its end; none if it does not."""
    found: list[WrittenCall] = []
    at = start
    while at < len(text) and len(found) <= MAX_CALLS:
        read, form = _expression(text, at)
        if read is None:
            return ()
        calls, at = read
        for name, arguments in calls:
            plain = name.removeprefix("functions.")
            if plain not in names:
                return ()
            found.append(WrittenCall(plain, json.dumps(arguments, ensure_ascii=False), form))
        at = _skip(text, at)
    return tuple(found)


def _expression(text: str, at: int) -> tuple[_Read | None, WrittenForm]:
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
    if text[at] == "[" and (listed := _listed(text, at)):
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
        at = _skip(text, read[1])
    return (found, at) if found else None


def _closed(inner: Callable[[str, int], _Read | None], text: str, at: int, closing: str) -> _Read | None:
    """What stands before `closing`, or before the end of the text: servers swallow the tag that ends a reply."""
    read = inner(text, at)
    if read is None:
        return None
    calls, at = read
    at = _skip(text, at)
    if text[at : at + len(closing)].lower() == closing.lower():
        return calls, at + len(closing)
    return (calls, at) if at >= len(text) else None


def _function_tag(text: str, at: int) -> _Read | None:
    """`<function=NAME>{…}</function>`, or with parameters in tags of their own."""
    opened = _FUNCTION.match(text, at)
    if opened is None:
        return None
    at, arguments = opened.end(), dict[str, object]()
    if text[at : at + 1] == "{":
        read = _object(text, at)
        if read is None:
            return None
        arguments, at = read
    else:
        while parameter := _PARAMETER.match(text, at):
            arguments[parameter[1] or parameter[2]] = parameter[3].strip("\n")
            at = parameter.end()
    closing = "</function>" if opened[1] else "</invoke>"
    at = _skip(text, at)
    if text.startswith(closing, at):
        at += len(closing)
    elif at < len(text):
        return None
    return [(opened[1] or opened[2], arguments)], at


def _called(text: str, at: int) -> _Read | None:
    """`functions.NAME({…})`, or `NAME(key="value")`."""
    opened = _CALLED.match(text, at)
    if opened is None:
        return None
    at, arguments = opened.end(), dict[str, object]()
    if text[at : at + 1] == "{":
        read = _object(text, at)
        if read is None:
            return None
        arguments, at = read
    else:
        while argument := _ARGUMENT.match(text, at):
            arguments[argument[1]] = _literal(argument[2])
            at = argument.end()
    at = _skip(text, at)
    return ([(opened[1], arguments)], at + 1) if text[at : at + 1] == ")" else None


def _listed(text: str, at: int) -> _Read | None:
    """`[NAME(key="value"), …]`, as Llama writes calls."""
    found: _Calls = []
    at = _skip(text, at + 1)
    while read := _called(text, at):
        found += read[0]
        at = _skip(text, read[1])
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
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


def _object(text: str, at: int) -> tuple[dict[str, object], int] | None:
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
    named = next((key for key in _NAMES if isinstance(members.get(key), str)), None)
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


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


# -- what is meant ----------------------------------------------------------------------------------------------------


def _is_attempt(start: str, names: Collection[str]) -> bool:
    """Whether a block that cannot be read begins like a call of one of these tools."""
    inner = re.match(r"(?:```\w*\s*|<[\w|]+>\s*|\[TOOL_CALLS\]\s*)*", start)
    rest = start[inner.end() :] if inner else start
    for name in map(re.escape, names):
        call = (
            rf'[\[{{\s]*"(?:{"|".join(_NAMES)}|type|tool_calls?|function_call)"[^{{}}]{{0,80}}?"(?:functions\.)?{name}"'
        )
        if re.match(rf'{call}|\{{\s*"{name}"\s*:\s*\{{|functions\.{name}\s*\(', rest):
            return True
        if re.search(rf'<function={name}>|<invoke name="{name}">', start):
            return True
    return False


def _quoted(calls: Iterable[WrittenCall], shown: Iterable[str]) -> bool:
    """Whether one of the calls, name and words, stands in a text that was shown."""
    texts = [(_flat(text), _flat(text.replace("\\n", " "))) for text in shown]
    return any(
        call.name in text[0] and (words := _words(call)) and all(_stands(word, text) for word in words)
        for call in calls
        for text in texts
    )


def _quoted_text(text: str, shown: Iterable[str]) -> bool:
    return any(_flat(text) in _flat(given) for given in shown)


def _stands(word: str, texts: Iterable[str]) -> bool:
    escaped = json.dumps(word, ensure_ascii=False)[1:-1]
    return any(_flat(form) in text for text in texts for form in (word, escaped, escaped.replace("\\n", " ")))


def _words(call: WrittenCall) -> list[str]:
    """The texts among the arguments."""
    arguments = cast("dict[str, object]", json.loads(call.arguments))
    return [value for value in arguments.values() if isinstance(value, str)]


def _flat(text: str) -> str:
    return " ".join(text.split())
