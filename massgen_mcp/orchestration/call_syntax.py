"""How models write calls into text, form by form: from a place in the text to the calls that stand there. Pure.

Must not know which tools there are, nor what is meant and what is quoted.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import cast

import yaml

from massgen_mcp.events.parts import WrittenForm
from massgen_mcp.orchestration.tolerant_json import MAX_MENDED, as_object, read_object, read_value

_JSON = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"\s*")
_OPEN_FENCE = re.compile(
    r"(```|~~~)[ \t]*(?:json5?|tool_calls?|tool_code|tool|python|py|xml|yaml|text|plaintext)?[ \t]*\r?\n"
)
_TAG = re.compile(
    r"<((?:\w+[:_])?(?:tool_?calls?|tools|function_?calls?|function_call|tool_use|functioncall))>\s*", re.IGNORECASE
)
_FUNCTION = re.compile(r'<function(?:=|\s+name=")([\w.:-]+)"?>\s*|<invoke name="([\w.:-]+)">\s*')
_PARAMETER = re.compile(
    r'(?:<parameter=([\w.-]+)>|<parameter name="([\w.-]+)"[^<>\n]{0,60}>)(.*?)</parameter>\s*', re.DOTALL
)
_OWN_TAG = re.compile(r"<([A-Za-z][\w.-]*)>\s*(?=<)")
_ELEMENT = re.compile(r"<([A-Za-z]\w*)>(.*?)</\1>\s*", re.DOTALL)
_PAIR = re.compile(r"<arg_key>\s*([\w.-]+)\s*</arg_key>\s*<arg_value>(.*?)</arg_value>\s*", re.DOTALL)
MARK = re.compile(
    r"\[CALL_ID\]\w*|<\|[^<>\n]{1,60}>|<\w{1,40}\|>|</?\uff5c[^<>\n]{1,60}>|\[/?[A-Z][A-Z_]{2,30}\]"
    r"|</?(?:[\w-]+[:_])?(?i:tool_?calls?|tools?|function_?calls?|start_function_call|end_function_call|tool_sep|tool_use"
    r"|plugin|action|execute|functioncall)>"
    r"|✿[A-Z]+✿:?|>>>|\bAction(?:[ _]Input)?:|\bfunctools(?=\[)|(?:assistant)?commentary to=(?=functions\.)"
)
"""What models, their templates and servers put around a call, and never into prose."""
_FENCE_LINE = re.compile(r"```\w*[ \t]*\n?")
_FILLER = re.compile(r"(?:(?:assistant|commentary|analysis|json|function|code|python)\b|to=|\s)+")
"""Words of templates between such marks."""
_CALL_NAME = re.compile(
    r"(?:call:)?((?:functions\.)?[A-Za-z_][\w.:-]*?)(?::\d+)?(?=\s*(?:[{(\[<]|```|json\s*\{|✿|Action|\n))"
)
_CALLED = re.compile(r"((?:functions\.|default_api\.)?[A-Za-z_]\w*(?:\.call)?)[ \t]*\(\s*")
_PRINTED = re.compile(r"print\(\s*")
_TEXT = r'''"""(?:.*?)"""|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\''''
_ARGUMENT = re.compile(
    rf"""([A-Za-z_]\w*)\s*[=]\s*({_TEXT}|\[(?:{_TEXT}|[^\[\]"'])*\]|-?\d+(?:\.\d+)?|True|False|None|true|false|null)\s*"""
    r"""(?:,\s*|(?=\)))""",
    re.DOTALL,
)
_GEMMA_TEXT = re.compile(r'<escape>(.*?)<escape>|<\|"\|>(.*?)<\|"\|>', re.DOTALL)
_GEMMA = re.compile(r'\{(?:<escape>.*?<escape>|<\|"\|>.*?<\|"\|>|[^{}<])*+\}', re.DOTALL)
_YAML_CALL = re.compile(r"(?:name|tool|function|action)[ \t]*:[ \t]*[\"']?([\w.:-]+)[\"']?[ \t]*\r?\n")
_NO_YAML = re.compile(r"(?:^|[\s:\[-])[&*!]\w|<<[ \t]*:", re.MULTILINE)
"""Anchors and tags: a text with them can grow beyond all bounds."""
_NAMESPACE = re.compile(
    r"(</?)(?:\uff5cDSML\uff5c|[A-Za-z][\w-]*:)(?=(?:invoke|parameter|tool_calls?|function_calls?)\b)"
)
NAMES = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "params", "input", "action_input", "tool_input")

_Calls = list[tuple[str, dict[str, object]]]
_Read = tuple[_Calls, int]
"""Calls, and where the text goes on."""


def strip_namespaces(text: str) -> str:
    """Return the text with the tags of calls that have a namespace of their model's without it."""
    return _NAMESPACE.sub(r"\1", text)


def expression(text: str, at: int) -> tuple[_Read | None, WrittenForm]:
    """Return the calls that are written at this place, and in which form."""
    if (fence := _OPEN_FENCE.match(text, at)) and (read := _read_closed(_read_calls, text, fence.end(), fence[1])):
        return read, "fenced_json"
    if (tag := _TAG.match(text, at)) and (read := _read_closed(_read_calls, text, tag.end(), f"</{tag[1]}>")):
        return read, "tool_call_tag"
    if _FUNCTION.match(text, at):
        return _function_tag(text, at), "function_tag"
    if text.startswith("<|python_tag|>", at):
        return _read_marked_calls(text, at), "python_tag"
    if read := _read_marked_calls(text, at):
        return read, "tool_call_tag"
    if read := _read_own_tag(text, at):
        return read, "function_tag"
    if _CALLED.match(text, at) or _PRINTED.match(text, at):
        return _read_called(text, at), "function_call"
    if text[at] == "[" and (listed := _read_list(text, at)):
        return listed, "python_tag"
    if read := _read_yaml_call(text, at):
        return read, "json"
    return _read_json_calls(text, at) or _read_named_json(text, at), "json"


def _read_calls(text: str, at: int) -> _Read | None:
    """Return one or several calls in any form that may stand within a tag."""
    found: _Calls = []
    while at < len(text):
        read = _read_one_call(text, at)
        if read is None:
            break
        found += read[0]
        at = skip(text, read[1])
    if not found:
        return None
    return (found, at)


def _read_one_call(text: str, at: int) -> _Read | None:
    if _FUNCTION.match(text, at):
        return _function_tag(text, at)
    if _CALLED.match(text, at) or _PRINTED.match(text, at):
        return _read_called(text, at)
    if text[at] == "[" and (listed := _read_list(text, at)):
        return listed
    return _read_json_calls(text, at) or _read_named_object(text, at) or _read_yaml_call(text, at)


# -- calls between the marks of templates ---------------------------------------------------------------------------


def _read_marked_calls(text: str, at: int) -> _Read | None:
    """Return calls that begin with a mark, as most templates write them, and the marks behind them."""
    at, marked = _skip_marks(text, at)
    if not marked:
        return None
    found: _Calls = []
    while at < len(text):
        read = _read_one_call(text, at) or _read_named_after_marks(text, at)
        if read is None:
            break
        found += read[0]
        at, _ = _skip_marks(text, skip(text, read[1]), marked=True)
    if not found:
        return None
    return (found, at)


def _skip_marks(text: str, at: int, *, marked: bool = False) -> tuple[int, bool]:
    """Return the place behind marks and the words between them, and whether there is one. `marked`: one came before."""
    while at < len(text):
        if found := MARK.match(text, at):
            marked = True
        elif not marked or not (found := _FILLER.match(text, at) or _FENCE_LINE.match(text, at)):
            break
        at = found.end()
    return skip(text, at), marked


def _read_named_after_marks(text: str, at: int) -> _Read | None:
    """`NAME <mark> {…}`: the name and its arguments stand apart."""
    name = _CALL_NAME.match(text, at)
    if name is None:
        return None
    start, _ = _skip_marks(text, skip(text, name.end()))
    for between in (_FILLER, _FENCE_LINE, _FILLER):
        found = between.match(text, start)
        start = found.end() if found else start
    return _read_named_arguments(name[1], text, start)


def _read_named_json(text: str, at: int) -> _Read | None:
    """`NAME{…}` without marks, which other languages write as well: only with JSON."""
    name = _CALL_NAME.match(text, at)
    if name is None or text[(start := skip(text, name.end())) : start + 1] != "{":
        return None
    try:
        value, end = cast("tuple[object, int]", _JSON.raw_decode(text, start))
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return ([(name[1], cast("dict[str, object]", value))], end)


def _read_named_object(text: str, at: int) -> _Read | None:
    """`NAME{…}`, or `NAME <arg_key>key</arg_key> <arg_value>value</arg_value>`, as GLM writes calls."""
    name = _CALL_NAME.match(text, at)
    if name is None:
        return None
    return _read_named_arguments(name[1], text, skip(text, name.end()))


def _read_named_arguments(name: str, text: str, at: int) -> _Read | None:
    if text[at : at + 1] != "{":
        pairs = _read_pairs(text, at)
        if pairs is None:
            return None
        return ([(name, pairs[0])], pairs[1])
    read = _read_gemma_object(text, at) or _read_object(text, at)
    if read is None:
        return None
    return ([(name, read[0])], read[1])


def _read_gemma_object(text: str, at: int) -> tuple[dict[str, object], int] | None:
    """`{key:<escape>text<escape>}`, as Gemma's small models write arguments."""
    whole = _GEMMA.match(text, at)
    if whole is None or not _GEMMA_TEXT.search(whole[0]):
        return None
    plain = _GEMMA_TEXT.sub(lambda found: json.dumps(found[1] or found[2] or "", ensure_ascii=False), whole[0])
    value = read_object(plain)
    if value is None:
        return None
    return (value, whole.end())


def _read_pairs(text: str, at: int) -> tuple[dict[str, object], int] | None:
    arguments: dict[str, object] = {}
    while one := _PAIR.match(text, at):
        arguments[one[1]], at = one[2], one.end()
    if not arguments:
        return None
    return (arguments, at)


def _read_own_tag(text: str, at: int) -> _Read | None:
    """`<NAME><key>value</key></NAME>`."""
    opened = _OWN_TAG.match(text, at)
    if opened is None:
        return None
    arguments: dict[str, object] = {}
    at = opened.end()
    while one := _ELEMENT.match(text, at):
        arguments[one[1]], at = one[2].strip("\n"), one.end()
    closing = f"</{opened[1]}>"
    if not (arguments and text.startswith(closing, at)):
        return None
    return ([(opened[1], arguments)], at + len(closing))


def _read_yaml_call(text: str, at: int) -> _Read | None:
    """`name: NAME`, and below it `arguments:` with lines that are set in, to the end or the end of the fence."""
    named = _YAML_CALL.match(text, at)
    if named is None or len(text) - at > MAX_MENDED:
        return None
    end = text.find("\n```", at)
    end = len(text) if end < 0 else end
    body = text[at:end]
    if _NO_YAML.search(body):
        return None
    try:
        value: object = yaml.safe_load(body)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    calls = list(_calls_in(value))
    if not calls:
        return None
    return calls, end


def _read_closed(inner: Callable[[str, int], _Read | None], text: str, at: int, closing: str) -> _Read | None:
    """What stands before `closing`, or before the end of the text: servers swallow the tag that ends a reply."""
    read = inner(text, at)
    if read is None:
        return None
    calls, at = read
    at = skip(text, at)
    if text[at : at + len(closing)].lower() == closing.lower():
        return calls, at + len(closing)
    if not at >= len(text):
        return None
    return (calls, at)


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
        return _read_object(text, at)
    if pairs := _read_pairs(text, at):
        return pairs
    arguments: dict[str, object] = {}
    while one := form.match(text, at):
        name, value = read(one)
        arguments[name], at = value, one.end()
    return arguments, at


def _read_called(text: str, at: int) -> _Read | None:
    """`functions.NAME({…})`, or `NAME(key="value")`, also within `print(…)`."""
    printed = _PRINTED.match(text, at)
    opened = _CALLED.match(text, printed.end() if printed else at)
    if opened is None:
        return None
    read = _arguments(text, opened.end(), _ARGUMENT, lambda one: (one[1], _literal(one[2])))
    if read is None:
        return None
    arguments, at = read
    for _ in range(2 if printed else 1):
        at = skip(text, at)
        if text[at : at + 1] != ")":
            return None
        at += 1
    return [(opened[1].removesuffix(".call"), arguments)], at


def _read_list(text: str, at: int) -> _Read | None:
    """`[NAME(key="value"), …]`, as Llama writes calls."""
    found: _Calls = []
    at = skip(text, at + 1)
    while read := _read_called(text, at):
        found += read[0]
        at = skip(text, read[1])
        if text[at : at + 1] == ",":
            at = skip(text, at + 1)
    if not (found and text[at : at + 1] == "]"):
        return None
    return (found, at + 1)


def _read_json_calls(text: str, at: int) -> _Read | None:
    if text[at : at + 1] not in ("{", "["):
        return None
    read = read_value(text, at)
    if read is None:
        return None
    calls = list(_calls_in(read[0]))
    if not calls:
        return None
    return (calls, read[1])


def _read_object(text: str, at: int) -> tuple[dict[str, object], int] | None:
    read = read_value(text, at)
    if read is None or not isinstance(read[0], dict):
        return None
    return cast("dict[str, object]", read[0]), read[1]


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
        arguments = as_object(rest if given is None else members[given])
        if arguments is not None:
            yield str(members[named]), arguments
    elif len(members) == 1:
        ((name, inner),) = members.items()
        if isinstance(inner, dict):
            yield name, cast("dict[str, object]", inner)


def _literal(text: str) -> object:
    if text.startswith('"""'):
        return text[3:-3]
    if text[0] == '"':
        with suppress(ValueError):
            return _JSON.decode(text)
    if text[0] in "\"'":
        plain = {"n": "\n", "t": "\t", "r": "\r"}
        return re.sub(r"\\(.)", lambda found: plain.get(found[1], found[1]), text[1:-1], flags=re.DOTALL)
    if text[0] == "[":
        read = read_value(text, 0)
        return [] if read is None else read[0]
    return json.loads({"True": "true", "False": "false", "None": "null"}.get(text, text))


def skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
