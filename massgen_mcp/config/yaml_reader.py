"""Configuration text into plain data that remembers its lines. YAML is read event by event, so nothing ever expands.

Must not know what a config means: which keys exist is for `models`, which spellings are welcome for `shape`.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Never, TypeAlias, cast

import yaml

from massgen_mcp.errors import MassgenError

MAX_BYTES = 256 * 1024
MAX_DEPTH = 40
MAX_NODES = 20_000
MAX_DIGITS = 40

Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain] | None"
Place: TypeAlias = tuple[str | int, ...]
"""Where a value is: `("agents", 0, "backend", "model")`."""

_LOADER = cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))
_PARSE = cast("Callable[..., Iterator[yaml.Event]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType] - PyYAML
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Located:
    """Plain data and the line of every part of it: of a mapping's entry the key's, of a list's item the item's."""

    data: Plain
    lines: Mapping[Place, int]
    source: str

    def line_of(self, place: Place) -> int | None:
        """The line of `place`, or of the nearest part around it. None: the data never had lines."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place)


def read_yaml(text: str | bytes, source: str) -> Located:
    """Read one YAML (or JSON) document of at most `MAX_BYTES`; `source` names it in messages.

    Raises `MassgenError("config_invalid")` with a line number for broken syntax and for everything in YAML that a
    config does not need: anchors, aliases, merge keys, tags, duplicate keys, keys that are not text, several
    documents, more than `MAX_DEPTH` levels or `MAX_NODES` values. Values are never quoted in a message.
    """
    reader = _Reader(source)
    text = _as_yaml(_checked_text(text, reader))
    try:
        for event in _PARSE(text, Loader=_LOADER):
            reader.take(event)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        too_deep = "nesting depth" in (error.problem or "")  # the parser's own limit, which is above ours
        reader.refuse(line, _TOO_DEEP if too_deep else f"not valid YAML: {_problem(error, text)}")
    except (yaml.YAMLError, ValueError, OverflowError):
        reader.refuse(1, "not valid YAML")
    return Located(reader.root, reader.lines, source)


def show_key(key: str) -> str:
    """A key as it may stand in a message: short, on one line, without control characters."""
    return key if re.fullmatch(r"[\w.-]{1,60}", key, re.ASCII) else ascii(key[:60])


_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"

_HINTS = {
    "cannot start any token": "indent with spaces, not tabs, and quote text that starts with a special character",
    "mapping values are not allowed": "quote text that contains a colon",
    "expected '-' indicator": "start all entries of a list in the same column",
    "expected <block end>": "indent the keys or entries of a group so that all start in the same column",
    "expected key": "start all keys of a mapping in the same column",
    "expected ',' or": "close each [ or {",
    "expected node content": "close each [ or {, and put a value between two commas",
    "expected ':'": "put a colon and a space after each key",
    "unexpected end of stream": "close the quotation mark",
    "expected <document start>": "a config is YAML: put a colon and a space after each key",
}
"""What helps, by a part of the parser's words."""


def _problem(error: yaml.MarkedYAMLError, text: str) -> str:
    problem = ascii(error.problem)[1:-1][:200] if error.problem else "syntax error"
    hint = next((hint for part, hint in _HINTS.items() if part in (error.problem or "")), None)
    line = text.splitlines()[error.problem_mark.line : error.problem_mark.line + 1] if error.problem_mark else []
    if "${" in "".join(line):
        hint = "massgen doesn't replace variables such as ${NAME}; write the value itself"
    return f"{problem}; {hint}" if hint else problem


def _checked_text(text: str | bytes, reader: "_Reader") -> str:
    """The text without its byte order mark; refused when it is too long or holds what no text file holds."""
    if len(text) > MAX_BYTES:
        reader.refuse(1, f"a config can have at most {MAX_BYTES // 1024} KiB")
    try:
        encoded = text if isinstance(text, bytes) else text.encode()
        decoded = encoded.decode()
    except UnicodeError as error:
        before = text[: error.start] if isinstance(error, UnicodeDecodeError | UnicodeEncodeError) else text
        newlines = before.count(b"\n") if isinstance(before, bytes) else before.count("\n")
        reader.refuse(newlines + 1, "not UTF-8 text; save the file as UTF-8")
    if len(encoded) > MAX_BYTES:
        reader.refuse(1, f"a config can have at most {MAX_BYTES // 1024} KiB")
    decoded = decoded.removeprefix("\ufeff")
    if found := re.search("^ *\xa0", decoded, re.MULTILINE):
        reader.refuse(decoded.count("\n", 0, found.start()) + 1, "indented with a non-breaking space; use plain spaces")
    if found := _FORBIDDEN.search(decoded):
        what = "a NUL character" if found.group() == "\0" else "a control character"
        reader.refuse(decoded.count("\n", 0, found.start()) + 1, f"{what} isn't allowed in a config")
    return decoded


@dataclass(slots=True)
class _Open:
    """A list or mapping that is being filled. `key` waits for its value."""

    container: list[Plain] | dict[str, Plain]
    place: Place
    line: int
    key: str | None = None


_PAIR = re.compile(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE)


def _as_yaml(text: str) -> str:
    """JSON is YAML but for one thing: JSON writes characters beyond U+FFFF as pairs of escapes, which YAML refuses."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    return _PAIR.sub(lambda pair: bytes.fromhex("".join(pair.groups())).decode("utf-16-be"), text)


@dataclass(slots=True)
class _Reader:
    source: str
    root: Plain = None
    lines: dict[Place, int] = field(default_factory=lambda: {(): 1})
    _open: list[_Open] = field(default_factory=list[_Open])
    _nodes: int = 0
    _ended: int | None = None

    def refuse(self, line: int, what: str) -> Never:
        raise MassgenError("config_invalid", f"{self.source}:{line}: {what}")

    def take(self, event: yaml.Event) -> None:
        line = cast("int", event.start_mark.line) + 1
        match event:
            case yaml.AliasEvent():
                self.refuse(line, "aliases (*name) aren't supported; repeat the value instead")
            case yaml.NodeEvent():
                self._take_node(event, line)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._open.pop()
            case yaml.DocumentStartEvent() if self._ended is not None:
                self.refuse(self._ended, "a config must be one document; remove the second one (---)")
            case yaml.DocumentEndEvent():
                self._ended = line
            case _:
                pass

    def _take_node(self, event: yaml.NodeEvent, line: int) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self.refuse(line, f"a config can have at most {MAX_NODES:,} values")
        if event.anchor is not None:
            self.refuse(line, "anchors (&name) aren't supported; repeat the value instead")
        if getattr(event, "tag", None) is not None:
            self.refuse(line, "tags (!name) aren't supported; quote the value if it is text")
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.container, dict) and top.key is None:
            self._take_key(top, top.container, event, line)
        elif isinstance(event, yaml.ScalarEvent):
            self._put(self._scalar(event, line), line)
        else:
            self._begin({} if isinstance(event, yaml.MappingStartEvent) else [], line)

    def _take_key(self, top: _Open, mapping: dict[str, Plain], event: yaml.NodeEvent, line: int) -> None:
        key = self._scalar(event, line) if isinstance(event, yaml.ScalarEvent) else None
        if not isinstance(key, str):
            self.refuse(line, "a key must be text; quote it")
        if key == "<<" and _is_plain(event):
            self.refuse(line, "merge keys (<<) aren't supported; repeat the keys instead")
        if key in mapping:
            first = self.lines[(*top.place, key)]
            self.refuse(line, f"duplicate key {show_key(key)}; it is already on line {first}")
        top.key, top.line = key, line

    def _begin(self, container: list[Plain] | dict[str, Plain], line: int) -> None:
        if len(self._open) >= MAX_DEPTH:
            self.refuse(line, _TOO_DEEP)
        self._open.append(_Open(container, self._put(container, line), line))

    def _put(self, value: Plain, line: int) -> Place:
        """Give the value to the innermost open container; returns where it now is."""
        if not self._open:
            self.root = value
            self.lines[()] = line
            return ()
        top = self._open[-1]
        if isinstance(top.container, list):
            place = (*top.place, len(top.container))
            top.container.append(value)
            self.lines[place] = line
            return place
        key, top.key = cast("str", top.key), None
        place = (*top.place, key)
        top.container[key] = value
        self.lines[place] = top.line
        return place

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> str | int | float | bool | None:
        """The value by the core rules of YAML 1.2: `yes`, `012`, `1:30` and dates are text."""
        text = cast("str", event.value)
        if not _is_plain(event):
            return text
        if text in _NULLS:
            return None
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        if _INTEGER.fullmatch(text):
            if len(text) > MAX_DIGITS:
                self.refuse(line, f"a number can have at most {MAX_DIGITS} digits; quote it if it is text")
            return int(text, 0)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if not math.isfinite(number):
                self.refuse(line, "the number is too large; quote it if it is text")
            return number
        return text


def _is_plain(event: yaml.NodeEvent) -> bool:
    return isinstance(event, yaml.ScalarEvent) and bool(event.implicit[0])
