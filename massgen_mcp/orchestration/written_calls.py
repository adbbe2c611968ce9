"""Calls that a model wrote as text, because it cannot call tools or does not. Pure.

A call counts when it is the whole reply or its last block. Whether it is only quoted is judged by the texts that the
model was shown.
"""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from massgen_mcp.backends.base import AssistantMessage, Message
from massgen_mcp.events.parts import WrittenForm
from massgen_mcp.markers import materials
from massgen_mcp.orchestration.call_syntax import NAMES, expression, skip

MAX_CALLS = 32
_MOST_STARTS = 32
"""So many lines from the first one, and from the last one, that may begin the last block are tried."""
_ATTEMPT_CHARACTERS = 300
"""A line that begins like a call and names a tool within so many characters is meant as one, readable or not."""

_STARTS = re.compile(r"^[ \t]*(?=[{\[<]|```|~~~|(?:functions\.)?\w+[ \t]*\()", re.MULTILINE)
_END_TOKENS = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|call|>", "<|endoftext|>", "<|end_of_text|>"),
    *("</s>", "<end_of_turn>"),
)
"""They end a reply, and some servers let them through."""
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)


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


def shown_texts(messages: Iterable[Message], *, of_caller: bool = False) -> list[str]:
    """What a model was shown of others' making: answers, reasons, results; `of_caller`: and the caller's own words."""
    texts = [message.text for message in messages if not isinstance(message, AssistantMessage)]
    left_out = () if of_caller else ("question", "message")
    return [found.text for text in texts for found in materials(text) if found.kind not in left_out]


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
        read, form = expression(text, at)
        if read is None:
            return ()
        calls, at = read
        for name, arguments in calls:
            plain = name.removeprefix("functions.")
            if plain not in names:
                return ()
            found.append(WrittenCall(plain, json.dumps(arguments, ensure_ascii=False), form))
        at = skip(text, at)
    return tuple(found)


# -- what is meant ----------------------------------------------------------------------------------------------------


def _is_attempt(start: str, names: Collection[str]) -> bool:
    """Whether a block that cannot be read begins like a call of one of these tools."""
    inner = re.match(r"(?:```\w*\s*|<[\w|]+>\s*|\[TOOL_CALLS\]\s*)*", start)
    rest = start[inner.end() :] if inner else start
    for name in map(re.escape, names):
        call = (
            rf'[\[{{\s]*"(?:{"|".join(NAMES)}|type|tool_calls?|function_call)"[^{{}}]{{0,80}}?"(?:functions\.)?{name}"'
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
