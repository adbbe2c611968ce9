"""A mapping of a YAML file in block style, edited line by line: what is not edited keeps every character. No I/O.

The caller compares what the file said before and says afterwards, and refuses what is not thought of here.
"""

import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

import yaml

_EMPTY = re.compile(r"\s*(#.*)?")
"""A line without content."""


def loads(text: str) -> Any:  # noqa: ANN401 - any YAML
    """The value. An empty text is an empty mapping. Raises `ValueError`, which says where it is no YAML."""
    try:
        return yaml.safe_load(text) or {}
    except (yaml.MarkedYAMLError, RecursionError) as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        raise ValueError(f"line {mark.line + 1} is no YAML" if mark else "it is nested too deeply") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError("it is no YAML") from error


def with_member(text: str, outer: str, key: str, value: Mapping[str, object]) -> str:
    """`text` in which the mapping `outer` of the top has `key`, both made where they are missing."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += newline
    lines = re.sub(rf"(?m)^{outer}:[ \t]*\{{\}}[ \t]*(?=\r?$)", f"{outer}:", text).splitlines(keepends=True)
    at = _key_line(lines, f"{outer}:", 0, len(lines))
    if at is None:
        lines.append(f"{outer}:{newline}")
        at = len(lines) - 1
    end = _block_end(lines, at)
    within = [_indent(line) for line in lines[at + 1 : end] if not _EMPTY.fullmatch(line)]
    indent = within[0] if within else "  "
    old = _key_line(lines, f"{indent}{key}:", at + 1, end)
    start, stop = (end, end) if old is None else (old, _block_end(lines, old))
    shown = yaml.safe_dump({key: dict(value)}, sort_keys=False, allow_unicode=True, width=10_000)
    lines[start:stop] = [f"{indent}{line}{newline}" for line in shown.splitlines()]
    return "".join(lines)


def without_member(text: str, outer: str, key: str) -> str:
    """`text` without `key` in the mapping `outer`, but with what stands before the next one."""
    lines = text.splitlines(keepends=True)
    at = _key_line(lines, f"{outer}:", 0, len(lines))
    if at is None:
        return text
    within = [_indent(line) for line in lines[at + 1 : _block_end(lines, at)] if not _EMPTY.fullmatch(line)]
    old = _key_line(lines, f"{within[0]}{key}:", at + 1, _block_end(lines, at)) if within else None
    if old is not None:
        del lines[old : _block_end(lines, old)]
    return "".join(lines)


def _key_line(lines: list[str], beginning: str, start: int, end: int) -> int | None:
    """The line in which a key is that stands alone in it."""
    alone = re.compile(rf"{re.escape(beginning)}\s*(#.*)?")
    return next((at for at in range(start, end) if alone.fullmatch(lines[at].rstrip())), None)


def _block_end(lines: list[str], at: int) -> int:
    """Behind the last line of what a key holds. Comments and empty lines behind that belong to what follows."""
    indent = len(_indent(lines[at]))
    held = [*takewhile(lambda line: _EMPTY.fullmatch(line.rstrip()) or len(_indent(line)) > indent, lines[at + 1 :])]
    while held and _EMPTY.fullmatch(held[-1].rstrip()):
        held.pop()
    return at + 1 + len(held)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" "))]
