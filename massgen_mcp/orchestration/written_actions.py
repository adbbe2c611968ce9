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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from massgen_mcp.backends.base import VOTE, AssistantMessage, JsonObject, Message, ToolSpec
from massgen_mcp.backends.thoughts import END_TOKENS
from massgen_mcp.events.parts import WrittenForm
from massgen_mcp.markers import materials
from massgen_mcp.orchestration.call_repair import find_name
from massgen_mcp.orchestration.call_syntax import MARK, NAMES, expression, skip, strip_namespaces
from massgen_mcp.orchestration.tolerant_json import read_object

MAX_CALLS = 32
_MOST_STARTS = 32
"""So many lines from the first one, and from the last one, that may begin the last block are tried."""
_ATTEMPT_CHARACTERS = 300
"""A line that begins like a call and names a tool within so many characters is meant as one, readable or not."""

_STARTS = re.compile(
    r"^[ \t]*(?=[{\[<✿]|```|~~~|>>>|functools\[|(?:functions\.|default_api\.|call:)?\w+[ \t]*[({]|Action[ \t]*:"
    r"|(?:name|tool|function|action)[ \t]*:)"
    r"|(?=<\|(?:channel|start|tool|python_tag|action|START_ACTION|from|recipient)|<\uff5ctool|\[TOOL_|(?:assistant)?commentary"
    r" to=functions\.)",
    re.MULTILINE,
)
"""Lines that may begin the last block, and marks that may begin it anywhere."""
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_MARKUP = re.compile(rf"\A(?:{MARK.pattern}|```\w*|~~~\w*|\s|(?:assistant|commentary|analysis|json)\b)+")
_DOCUMENT = re.compile(r'\bjson\b|"content"\s*:', re.IGNORECASE)
"""Where somebody speaks of JSON, an object with `content` may be the answer itself."""
NEW_ANSWER = "new_answer"
_BETWEEN = 60
"""Letters of marks between a tool's name and its arguments, or a key and its value."""
MAY_BE_MISSING = frozenset({"reason", "same_as"})
"""A vote counts without them."""


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


def read_calls(
    text: str,
    names: Collection[str],
    shown: Sequence[str] = (),
    *,
    ending: Sequence[ToolSpec] = (),
    asked: Sequence[str] = (),
) -> Writing:
    """Return the calls of tools with one of `names` that `text` ends with; none if they stand in a text that was
    `shown`. `ending`: the tools that end the turn; a reply that is nothing but the arguments of one of them is a call
    of it, unless the caller, who wrote the texts in `asked`, may want such a document.
    """
    body = strip_namespaces(_without_end_tokens(text))
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
            return _unless_quoted(calls, shown, whole=is_only_markup(body[:start]))
        up_to_the_end = body[-1] in "}>)]`" or not body[:start].strip()
        attempted = attempted or (up_to_the_end and _is_attempt(body[start : start + _ATTEMPT_CHARACTERS], names))
    if bare := _read_bare_arguments(body, ending, [*shown, *asked]):
        return _unless_quoted((bare,), shown, whole=True)
    attempted = attempted or _is_marked_attempt(body, names)
    first = next(iter(starts), 0)
    return Writing(unreadable=attempted and not _quoted_text(body[first:], shown))


def is_only_markup(text: str) -> bool:
    """Whether there is nothing in the text but what templates put around a call."""
    return not _MARKUP.sub("", text).strip()


def _unless_quoted(calls: tuple[WrittenCall, ...], shown: Sequence[str], *, whole: bool) -> Writing:
    """Return the calls, unless they are quoted. `whole`: nothing else stands in the reply. Then a copy word for word is
    a quotation; with other words around it, so is whatever resembles a call that was shown.
    """
    if _quoted(calls, shown):
        return Writing(unreadable=whole)
    if not whole and any(_is_planted(call, shown) for call in calls):
        return Writing()
    return Writing(calls)


def shown_texts(messages: Iterable[Message], *, of_caller: bool = False) -> list[str]:
    """What a model was shown of others' making: answers, reasons, results; `of_caller`: and the caller's own words."""
    texts = [message.text for message in messages if not isinstance(message, AssistantMessage)]
    left_out = () if of_caller else ("question", "message")
    return [found.text for text in texts for found in materials(text) if found.kind not in left_out]


def _without_end_tokens(text: str) -> str:
    text = text.rstrip()
    while token := next(filter(text.endswith, END_TOKENS), None):
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
            known = find_name(name, names)
            if known is None:
                return ()
            found.append(WrittenCall(known, json.dumps(arguments, ensure_ascii=False, default=str), form))
        at = skip(text, at)
    return tuple(found)


# -- what is meant ----------------------------------------------------------------------------------------------------


def _is_attempt(start: str, names: Collection[str]) -> bool:
    """Whether a block that cannot be read begins like a call of one of these tools."""
    inner = _MARKUP.match(start)
    rest = start[inner.end() :] if inner else start
    for name in map(re.escape, names):
        call = (
            rf'[\[{{\s]*"(?:{"|".join(NAMES)}|type|tool_calls?|function_call)"[^{{}}]{{0,80}}?"(?:functions\.)?{name}"'
        )
        if re.match(rf"""{call}|\{{\s*"{name}"\s*:\s*\{{|functions\.{name}\s*\(|<{name}>|{name}\s*\{{\s*["']""", rest):
            return True
        if re.search(rf'<function={name}>|<invoke name="{name}">', start):
            return True
    return False


def _is_marked_attempt(body: str, names: Collection[str]) -> bool:
    """Whether a text begins with what templates put around calls, and names one of these tools right behind it."""
    if not MARK.match(body.lstrip()):
        return False
    start = body[:_ATTEMPT_CHARACTERS]
    return any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", start) for name in names)


def _read_bare_arguments(body: str, ending: Sequence[ToolSpec], read: Sequence[str]) -> WrittenCall | None:
    """Return the call of the one tool whose arguments the whole text is. `read`: all that the model has read."""
    core = _MARKUP.sub("", body, count=1).strip().removesuffix("```").rstrip()
    if core[:1] != "{" or core[-1:] != "}":
        return None
    arguments = read_object(core)
    if not arguments:
        return None
    fitting = [tool.name for tool in ending if _is_tool_call(arguments, tool)]
    if len(fitting) != 1 or any(_DOCUMENT.search(text) for text in read if fitting[0] == NEW_ANSWER):
        return None
    return WrittenCall(fitting[0], json.dumps(arguments, ensure_ascii=False, default=str), "json")


def _is_tool_call(arguments: Mapping[str, object], tool: ToolSpec) -> bool:
    """Check that these are arguments of this tool, and enough of them."""
    properties = cast("JsonObject", tool.parameters.get("properties", {}))
    required = cast("list[str]", tool.parameters.get("required", []))
    needed = {name for name in required if name not in MAY_BE_MISSING}
    return bool(needed) and needed <= arguments.keys() <= properties.keys()


def _is_planted(call: WrittenCall, shown: Iterable[str]) -> bool:
    """Whether a text that was shown holds a call of this tool, in any form; of votes, one with this choice."""
    arguments = cast("dict[str, object]", json.loads(call.arguments))
    texts = [_key(text) for text in shown]
    if call.name == VOTE:
        choice = _key(str(arguments.get("agent_id", "")))
        pattern = rf"agentid.{{0,{_BETWEEN}}}{re.escape(choice)}"
        if number := re.search(r"\d+", choice):
            pattern = rf"agentid\D{{0,{_BETWEEN}}}{number[0]}(?!\d)"
        return any(re.search(pattern, text) for text in texts)
    keys = [_key(key) for key in arguments]
    return bool(keys) and any(_resembles_call(text, _key(call.name), keys) for text in texts)


def _resembles_call(text: str, name: str, keys: Sequence[str]) -> bool:
    near = re.search(rf"{re.escape(name)}.{{0,{_BETWEEN}}}{re.escape(keys[0])}", text)
    return near is not None and all(key in text for key in keys)


def _quoted(calls: Iterable[WrittenCall], shown: Iterable[str]) -> bool:
    """Whether one of the calls, name and words, stands in a text that was shown."""
    texts = [(_key(text), (_flat(text), _flat(text.replace("\\n", " ")))) for text in shown]
    return any(
        _key(call.name) in key and (words := _argument_texts(call)) and all(_stands(word, flat) for word in words)
        for call in calls
        for key, flat in texts
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
_SET_BOLD = re.compile(
    r"^[ \t]{0,3}(?:#{1,6}[ \t]+)?(?:\*{1,3}|_{1,3})?|(?:\*{1,3}|_{1,3})(?=[ \t.!]*$)|(?<=:)(?:\*{1,3}|_{1,3})(?=[ \t])"
    r"|(?<=:[ \t])(?:\*{1,3}|_{1,3})(?=\w)"
)
"""A heading's signs and those of emphasis, around a line or its label."""
_FOR_NOBODY = re.compile(r"[*_#\s]*vote[*_]*\s*[:=]", re.IGNORECASE)
"""The beginning of a line that can only be meant as a vote, whatever it names."""
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
    if alone := reader.name_alone(text):
        return WrittenVote(alone, "")
    read = [_key(given) for given in shown]
    quotable = reader.quotable(read)
    own = [line for line in lines if line.plain and line.name not in quotable]
    claims = [claim for claim in reader.claims(text) if not any(_key(claim.sentence) in key for key in read)]
    chosen = {claim.name for claim in claims}
    if own and len(chosen | {line.name for line in own}) == 1:
        return WrittenVote(own[0].name, _without(text, own))
    quotes_only = all(line.quoted or line.name in quotable for line in lines)
    said = len(chosen) == 1 and any(claim.leads for claim in claims) and not chosen & reader.find_urged(read)
    if said and not own and quotes_only:
        return WrittenVote(chosen.pop(), text)
    is_vote = len(text.splitlines()) == 1 and _FOR_NOBODY.match(text) is not None
    if not (lines or is_vote or reader.claims(text)):
        return None
    return "unclear"


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that has the form of a vote. `plain`: at most set bold or as a heading, and in no list, quote or block of
    code.
    """

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
        opening = r"[<\[({]?(?:(?:name|agent_id|agent|answer|id)[ \t]*[=:][ \t]*)?[<\[({\"'`]?"
        given = rf"{opening}{name}[>\])}}\"'`]*"
        numbered = r"(?:number[ \t]+|no\.?[ \t]+|\#)?[<\[(]?(\d{1,2})[>\])]?"
        boxed = rf"\$*\\boxed\{{(?:\\text\{{)?(?:vote[ \t]*[:=]?[ \t]*)?{name}\}}*\$*"
        self._vote = re.compile(
            r" {0,3}(?:(?:my|final)[ \t]+)*vote(?:[ \t]+(?:for|is|goes[ \t]+to))?[ \t]*"
            rf"(?:[:=]?[ \t]*{given}|[:=][ \t]*{boxed}|[:=][ \t]*{numbered})[ \t]*[.!]?"
            rf"| {{0,3}}(?:(?:my|the|final)[ \t]+)*(?:answer|choice|vote)?[ \t]*:?[ \t]*{boxed}[ \t]*[.!]?",
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
            name = (
                self._read_vote_line(bare) or self._read_vote_line(line.strip()) if len(line) <= _LONGEST_LINE else None
            )
            if name is not None:
                ends = line.strip(" \t*_#+-.")
                quoted = fenced or ends[:1] in (">", "|", "`", *_QUOTES) or ends[-1:] in _QUOTES
                plain = not fenced and not quoted and self._read_vote_line(_SET_BOLD.sub("", line)) is not None
                found.append(_Line(place, name, plain, quoted))
        return found

    def _read_vote_line(self, line: str) -> str | None:
        """Return the name that a line votes for; None if it is no such line."""
        vote = self._vote.fullmatch(line)
        if vote is None:
            return None
        given = next(filter(None, vote.groups()))
        return self._names.get(_key(f"agent{int(given)}" if given.isdigit() else given))

    def name_alone(self, text: str) -> str | None:
        """Return the name that a whole text is, marks around it left out."""
        if len(text) > _LONGEST_LINE:
            return None
        return self._names.get(_key(_EMPHASIS.sub("", text).strip(_EDGES)))

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

    def find_urged(self, read: Sequence[str]) -> set[str]:
        """Return the names of which a text that was shown says that somebody chooses them: who says the same may quote
        it in other words.
        """
        verbs = "vote|votefor|votingfor|choose|pick|select|gowith|myvoteis|mychoiceis|voteis|votegoesto|choiceis"
        return {
            name
            for key, name in self._names.items()
            if any(re.search(rf"(?:{verbs})(?:answer(?:of)?)?{key}(?!\d)", text) for text in read)
        }

    def quotable(self, read: Sequence[str]) -> set[str]:
        """The names for which a text that was shown holds something that reads like a vote, however it is written;
        `read` are the keys of these texts. "I vote for NAME" is not meant: it is a sentence, not a line.
        """
        opening = (
            r"(?:(?<!i)vote(?:for|is|goesto)?|boxed(?:text)?(?:vote)?)(?:answer(?:of)?|name|agentid|number|no|id)?"
        )
        return {
            name
            for key, name in self._names.items()
            if any(re.search(rf"{opening}(?:{key}|{key.removeprefix('agent')})(?!\d)", text) for text in read)
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
