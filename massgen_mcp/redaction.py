"""Takes keys out of text, in every form in which they travel: as they are, quoted, URL-encoded, base64, hexadecimal.

Pure: it is told the keys and knows nothing of where they come from or where text goes. A value that is no secret (too
short, or a placeholder) is left alone, so that honest text is never altered.
"""

import base64
import html
import json
import os
import re
import shlex
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TextIO, TypeVar, cast
from urllib.parse import quote, quote_plus

SHORTEST_KEY = 16
"""Characters. A shorter value may be an ordinary word, and no provider gives out such a key."""

_FEW_CHARACTERS = 6
_PLACEHOLDER = re.compile(
    r"[^a-z0-9]*((an?|any|anything|api|change|changeme|dummy|empty|example|fake|foo|for|here|insert|is|key|local|me|model|"
    r"my|needed|no|none|not|null|openai|placeholder|put|replace|required|secret|server|set|sk|some|test|the|this|to|todo|"
    r"token|unused|use|value|with|your)([^a-z0-9]+|$))+",
    re.IGNORECASE,
)
"""`not-needed-for-a-local-server`, `YOUR_API_KEY_HERE`, and the like."""

_HEAD = 3
"""A stream is looked at more closely only where these many characters of a form are in it."""

ValueT = TypeVar("ValueT")


class Redactor:
    """Replaces keys by `[key NAME]`. `keys` are values by the name of what holds them."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._names: dict[str, str] = {}
        for name, value in keys.items():
            for form in _forms_of(value):
                self._names.setdefault(form, f"[key {name}]")
        self._by_first: dict[str, list[str]] = {}
        for form in sorted(self._names, key=len, reverse=True):
            self._by_first.setdefault(form[0], []).append(form)
        self._whole = _one_of(self._by_first)
        self._heads = _heads_of(self._by_first)
        self._longest = max(map(len, self._names), default=0)

    def finds(self, text: str) -> bool:
        """Whether a key is in `text`."""
        return bool(self._names) and self._whole.search(text) is not None

    def text(self, text: str) -> str:
        """`text` without keys."""
        if not self._names:
            return text
        return self._whole.sub(lambda found: self._names[found[0]], text)

    def value(self, value: ValueT) -> ValueT:
        """The same for every text in plain data: mappings (their keys, too), lists and tuples."""
        return cast("ValueT", self._value(value)) if self._names else value

    def _value(self, value: object) -> object:
        match value:
            case str():
                return self.text(value)
            case dict():
                pairs = cast("dict[object, object]", value).items()
                return {self._value(name): self._value(item) for name, item in pairs}
            case list():
                return [self._value(item) for item in cast("list[object]", value)]
            case tuple():
                return tuple(self._value(item) for item in cast("tuple[object, ...]", value))
            case _:
                return value

    def json(self, text: str) -> str:
        """JSON text without keys, also where an escape such as `\\u0041` hides one. Text that is no JSON counts as
        text.
        """
        redacted = self.text(text)
        if not self._names or "\\" not in redacted:
            return redacted
        try:
            data = json.loads(redacted)
        except (ValueError, RecursionError):
            return redacted
        without = self.value(data)
        return redacted if without == data else json.dumps(without)

    def stream(self) -> "RedactedText":
        """For text that comes in pieces."""
        return RedactedText(self)

    def ready(self, buffer: str) -> tuple[str, str]:
        """What of a stream's text so far can be passed on, without keys, and the rest, which may be the beginning of
        one.
        """
        if not self._names or self._heads.search(buffer) is None:
            return buffer, ""
        out: list[str] = []
        start = 0
        while True:
            found = self._whole.search(buffer, start)
            held = self._open_at(buffer, start, found.start() if found else len(buffer) - 1)
            if held is not None:
                return "".join((*out, buffer[start:held])), buffer[held:]
            if found is None:
                return "".join((*out, buffer[start:])), ""
            out += (buffer[start : found.start()], self._names[found[0]])
            start = found.end()

    def _open_at(self, buffer: str, start: int, last: int) -> int | None:
        """The first place, from `start` to `last`, at which all that follows is the beginning of a longer form."""
        place = max(start, len(buffer) - self._longest + 1)
        while (head := self._heads.search(buffer, place)) is not None and head.start() <= last:
            place = head.start()
            rest = buffer[place:]
            if any(len(form) > len(rest) and form.startswith(rest) for form in self._by_first[rest[0]]):
                return place
            place += 1
        return None


class RedactedText:
    """A text in pieces: what may be the beginning of a key is held back until it is decided."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def add(self, piece: str) -> str:
        """The next piece; returns what can be passed on, which may be nothing."""
        ready, self._held = self._redactor.ready(self._held + piece)
        return ready

    def end(self) -> str:
        """Nothing comes any more; returns what was held back."""
        rest, self._held = self._redactor.text(self._held), ""
        return rest


class RedactedStream:
    """A text stream of a process, such as its standard error, through which no key passes. A key that is written in
    several pieces is found where the pieces make one line.
    """

    def __init__(self, stream: TextIO, redactor: Redactor) -> None:
        self._stream = stream
        self._text = redactor.stream()

    def write(self, text: str) -> int:
        ready = self._text.add(text)
        if text.endswith("\n"):
            ready += self._text.end()
        self._stream.write(ready)
        return len(text)

    def flush(self) -> None:
        self._stream.write(self._text.end())
        self._stream.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def is_secret(value: str) -> bool:
    """Whether a value is to be kept out of texts: no placeholder, and long enough not to be a word by chance."""
    long_and_varied = len(value) >= SHORTEST_KEY and len(set(value)) >= _FEW_CHARACTERS
    return long_and_varied and _PLACEHOLDER.fullmatch(value) is None


def _forms_of(value: str) -> Iterator[str]:
    """Every form of a value that is a secret. Of one with white space in it, which is no key, the pieces as well."""
    for secret in dict.fromkeys((value.strip(), *value.split())):
        if is_secret(secret):
            yield from _texts_of(secret)
            yield from _codes_of(secret.encode("utf-8", "surrogateescape"))


def _texts_of(secret: str) -> Iterator[str]:
    quoted = json.dumps(secret)[1:-1]
    yield from (secret, quoted, json.dumps(quoted)[1:-1], repr(secret)[1:-1], html.escape(secret))
    yield shlex.quote(secret).removeprefix("'").removesuffix("'")
    yield secret.replace("'", "'\\''")
    for encoded in (
        quote(secret, safe="", errors="replace"),
        quote(secret, errors="replace"),
        quote_plus(secret, errors="replace"),
    ):
        yield encoded
        yield re.sub("%..", lambda code: code[0].lower(), encoded)


def _codes_of(secret: bytes) -> Iterator[str]:
    """Hexadecimal and base64. In longer data a key begins at any of three places of a base64 group; of each form those
    characters count that stand for the key alone.
    """
    yield secret.hex()
    yield secret.hex().upper()
    for before, unsure in ((0, 0), (1, 2), (2, 3)):
        whole = (before + len(secret)) * 8 // 6
        for encode in (base64.standard_b64encode, base64.urlsafe_b64encode):
            yield encode(bytes(before) + secret).decode()[unsure:whole]


def _one_of(by_first: Mapping[str, list[str]]) -> re.Pattern[str]:
    """Any of the forms, the longest first. Grouped by their first characters, which the engine skips to."""
    groups = (
        f"{re.escape(first)}(?:{'|'.join(re.escape(form[1:]) for form in forms)})" for first, forms in by_first.items()
    )
    return re.compile("|".join(groups))


def _heads_of(by_first: Mapping[str, list[str]]) -> re.Pattern[str]:
    """Where a form may begin: its first characters, or fewer of them at the end of the text."""
    groups: list[str] = []
    for first, forms in by_first.items():
        heads = dict.fromkeys(form[1:_HEAD] for form in forms)
        ends = dict.fromkeys(form[1:length] for form in forms for length in range(2, _HEAD))
        options = [*map(re.escape, heads), *(f"{re.escape(end)}\\Z" for end in ends), "\\Z"]
        groups.append(f"{re.escape(first)}(?:{'|'.join(options)})")
    return re.compile("|".join(groups))


@contextmanager
def redacted_output(redactor: Redactor) -> Generator[None]:
    """Whatever this process writes as text on its standard output and standard error passes `redactor`: what it prints,
    its log, warnings, tracebacks.
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", RedactedStream(stream, redactor)) for stream in before)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            _flush_or_discard(stream)
        sys.stdout, sys.stderr = before


def _flush_or_discard(stream: TextIO) -> None:
    """Flush what is left, mostly nothing: what a command prints is flushed, and its faults are told, line by line. A
    stream that takes nothing any more must not change the exit code when the process ends.
    """
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


NO_KEYS = Redactor({})
"""Finds nothing."""
