"""Calls and votes that a model wrote as text, because it cannot call tools or does not. Pure.

A call counts when it is the whole reply or its last block. Whether it is only quoted is judged by the texts that the
model was shown.

A model that judges answers also quotes them, and an answer may hold a line that looks like a vote. So what counts as a
vote is a plain line of the model's own, or a sentence in which it says what it chooses, as long as nothing that it was
shown says the same, and nothing else in its text says otherwise.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, cast

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
        if calls := _calls_only(body, start, names):
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


def _calls_only(text: str, start: int, names: Collection[str]) -> tuple[WrittenCall, ...]:
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
        call.name in text[0] and (words := _argument_texts(call)) and all(_stands(word, text) for word in words)
        for call in calls
        for text in texts
    )


def _quoted_text(text: str, shown: Iterable[str]) -> bool:
    return any(_flat(text) in _flat(given) for given in shown)


def _stands(word: str, texts: Iterable[str]) -> bool:
    escaped = json.dumps(word, ensure_ascii=False)[1:-1]
    return any(_flat(form) in text for text in texts for form in (word, escaped, escaped.replace("\\n", " ")))


def _argument_texts(call: WrittenCall) -> list[str]:
    """The texts among the arguments."""
    arguments = cast("dict[str, object]", json.loads(call.arguments))
    return [value for value in arguments.values() if isinstance(value, str)]


def _flat(text: str) -> str:
    return " ".join(text.split())


_LONGEST_LINE = 300
"""No longer line is a vote."""
_QUOTES = "\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb"
"""Marks of a quotation, as people set them."""
_EMPHASIS = re.compile(rf"[*_`{_QUOTES}]")
_EDGES = " \t>|#+.!:()[]{}<~=\u2022-"
"""What may stand around a vote in a list, a heading, a table or a quotation."""
_NUMBER = re.compile(r"\d{1,2}[.)][ \t]")
_CODE_FENCE = re.compile(r" {0,3}(```|~~~)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_QUOTATION = re.compile(
    r"\"[^\"\n]*\"|`[^`\n]*`|(?<!\w)'[^'\n]*'(?!\w)|[\u201c\u201e][^\u201c\u201d\n]*[\u201c\u201d]|\xab[^\xbb\n]*\xbb"
)
_NOT = re.compile(r"\b(?:not|never|cannot|no longer|instead of|if|would have|\w+n't)\b", re.IGNORECASE)
_LOOKALIKES = str.maketrans(
    "\u0430\u0410\u0435\u0415\u043e\u041e\u0440\u0442\u0422\u0443\u0456\u03bd\u039d\u03bf\u039f\u03c4\u03a4\u03b5\u0395\u03b1\u0391\u03b7\u0261\u0475",
    "aAeEoOptTyivNoOtTeEaAngv",
)
"""Letters of other scripts that are drawn as those of a vote are."""


@dataclass(frozen=True, slots=True)
class WrittenVote:
    """The name that is voted for, and the rest of the text."""

    name: str
    reason: str


def read_vote(text: str, names: Collection[str], shown: Iterable[str] = ()) -> WrittenVote | Literal["unclear"] | None:
    """The vote for one of `names` that `text` is. `shown`: all that its model has read, as one text or several.

    `unclear`: it speaks of a vote, but which one it means, or whether it only quotes one, cannot be told. None: it says
    nothing of a vote.
    """
    if not names:
        return None
    text = text.strip()
    reader = _Reader(names)
    lines = reader.lines(text)
    if len(text.splitlines()) == 1 and len(lines) == 1 and not lines[0].quoted:
        return WrittenVote(lines[0].name, "")  # who says nothing else quotes nobody
    read = [_key(given) for given in shown]
    quotable = reader.quotable(read)
    own = [line for line in lines if line.plain and line.name not in quotable]
    claims = reader.claims(text)
    chosen = {claim.name for claim in claims if not any(_key(claim.sentence) in key for key in read)}
    if own and len(chosen | {line.name for line in own}) == 1:
        return WrittenVote(own[0].name, _without(text, own))
    if not lines and len(chosen) == 1 and len({claim.name for claim in claims}) == 1 and any(c.leads for c in claims):
        return WrittenVote(chosen.pop(), text)
    return "unclear" if lines or claims else None


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that has the form of a vote. `plain`: without decoration, and in no list, quote or block of code."""

    place: int
    name: str
    plain: bool
    quoted: bool


@dataclass(frozen=True, slots=True)
class _Claim:
    """In `sentence` the author says whom it chooses. `leads`: the text begins or ends with it."""

    name: str
    sentence: str
    leads: bool


class _Reader:
    """Knows the names on a ballot."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = {_key(name): name for name in names}
        spaced = (r"[ \t_-]?".join(map(re.escape, _name_parts(name))) for name in sorted(names, key=len, reverse=True))
        name = rf"(?:answer[ \t]+(?:of[ \t]+)?)?({'|'.join(spaced)})(?!\w)"
        self._vote = re.compile(
            rf" {{0,3}}(?:(?:my|final)[ \t]+)*vote(?:[ \t]+(?:for|is|goes[ \t]+to))?[ \t]*[:=]?[ \t]*{name}[ \t]*[.!]?",
            re.IGNORECASE,
        )
        verb = r"(?:(?:am[ \t]+)?(?:voting|vote)[ \t]+for|choose|pick|select|go[ \t]+with)"
        self._claim = re.compile(
            rf"\b(?:i|we)[ \t]+(?:\w+[ \t]+){{0,3}}?{verb}[ \t:]*{name}"
            rf"|\bmy[ \t]+(?:final[ \t]+)?(?:vote|choice)(?:[ \t]+(?:is|goes[ \t]+to|for))?[ \t:]*{name}"
            rf"|\b{name}[ \t]+(?:gets|has|receives|is)[ \t]+my[ \t]+(?:vote|choice)",
            re.IGNORECASE,
        )

    def lines(self, text: str) -> list[_Line]:
        found: list[_Line] = []
        for place, whole, fenced in _numbered_lines(text):
            line = _folded(whole[: _LONGEST_LINE + 1]).rstrip()
            bare = _EMPHASIS.sub("", line).strip(_EDGES)
            bare = bare[number.end() :] if (number := _NUMBER.match(bare)) else bare
            vote = self._vote.fullmatch(bare) if len(line) <= _LONGEST_LINE else None
            if vote:
                ends = line.strip(" \t*_#+-.")
                quoted = fenced or ends[:1] in (">", "|", *_QUOTES) or ends[-1:] in _QUOTES
                plain = not fenced and self._vote.fullmatch(line) is not None
                found.append(_Line(place, self._names[_key(vote[1])], plain, quoted))
        return found

    def claims(self, text: str) -> list[_Claim]:
        """Whom the author says to choose; quotations and what is denied are left out."""
        own = [
            line for _, line, fenced in _numbered_lines(text) if not fenced and not line.lstrip().startswith((">", "|"))
        ]
        unquoted = _EMPHASIS.sub("", _QUOTATION.sub(self._if_a_name, _folded("\n".join(own))))
        sentences = [part[:_LONGEST_LINE] for part in _SENTENCE.split(unquoted) if part.strip()]
        return [
            _Claim(self._names[_key(next(filter(None, found.groups())))], sentence, place in (0, len(sentences) - 1))
            for place, sentence in enumerate(sentences)
            for found in self._claim.finditer(sentence)
            if not _NOT.search(sentence[: found.end()])
        ]

    def _if_a_name(self, quotation: re.Match[str]) -> str:
        """What is left of a quotation: the name, if it is one."""
        return self._names.get(_key(quotation[0]), " ")

    def quotable(self, read: Sequence[str]) -> set[str]:
        """The names for which a text that was shown holds something that reads like a vote, however it is written;
        `read` are the keys of these texts. "I vote for NAME" is not meant: it is a sentence, not a line.
        """
        return {
            name
            for key, name in self._names.items()
            if any(re.search(rf"(?<!i)vote(?:for|is|goesto)?(?:answer(?:of)?)?{key}(?!\d)", text) for text in read)
        }


def _numbered_lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Each line with its place, and whether it stands in a block of code."""
    fence = ""
    for place, line in enumerate(text.splitlines()):
        mark = _CODE_FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
        else:
            yield place, line, bool(fence) or line.startswith(("    ", "\t"))


def _name_parts(name: str) -> list[str]:
    """The parts of a name, between which a writer may put a space."""
    return re.findall(r"[^\W\d_]+|\d+", name) or [name]


def _folded(text: str) -> str:
    """Without letters of other scripts that look like ours, and without what is not seen."""
    text = unicodedata.normalize("NFKC", text).translate(_LOOKALIKES)
    return "".join(letter for letter in text if unicodedata.category(letter) != "Cf")


def _key(text: str) -> str:
    """The letters and digits alone."""
    return re.sub(r"[\W_]+", "", _folded(text).casefold())


def _without(text: str, lines: Sequence[_Line]) -> str:
    places = {line.place for line in lines}
    return "\n".join(line for place, line in enumerate(text.splitlines()) if place not in places).strip()
