"""The lines of a check's output that tell why it failed, or how it passed. Pure."""

import re
from itertools import pairwise

MAX_CHARACTERS = 2_000
MAX_TELLING = 20
"""So many of the lines that look like a failure are shown, and at least `LAST_LINES` of the end."""
LAST_LINES = 10
LINE_CHARACTERS = 200
LAST_OF_PASS = 3
"""So many lines of the end are shown of a check that passes."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_TELLING = re.compile(
    r"\b(?:FAIL(?:ED|URE|URES|S)?|ERRORS?|Error|\w+Error|Exception|panic(?:ked)?|assert\w*|fatal|not ok|expected)\b"
    r"|^E\s|^\s*[✗✕✘\u00d7]|: error\b",
    re.IGNORECASE,
)


_ASSERTIONS = (
    re.compile(r"^E\s+\S|^\s*[\w.]*(?:Error|Exception)\s*:"),
    re.compile(r"assertion .*failed|panicked at|_test\.go:\d+:|\bexpect\(|: error\b|^\s*Error\b", re.IGNORECASE),
    _TELLING,
)
"""What says in one line why a test failed, in the tools of many languages; the surest first."""


def excerpt_of(output: str) -> str:
    """At most `MAX_CHARACTERS`, from the end where there is more; without colours and other control characters. First
    of all stands the line of the first failure that says what was not so, where one does.
    """
    lines = _output_lines(output)
    telling = [place for place, line in enumerate(lines) if _TELLING.search(line)][:MAX_TELLING]
    places = sorted({*telling, *range(max(0, len(lines) - LAST_LINES), len(lines))})
    shown = [lines[places[0]]] if places else []
    for before, place in pairwise(places):
        shown += ["…"] if place > before + 1 else []
        shown.append(lines[place])
    text = "\n".join(shown)
    first = next((line.strip() for one in _ASSERTIONS for line in lines if one.search(line)), "")
    head = f"{first}\n" if first and not text.startswith(first) else ""
    room = MAX_CHARACTERS - len(head)
    return head + (text if len(text) <= room else f"…{text[1 - room :]}")


def last_of(output: str) -> str:
    """The last `LAST_OF_PASS` lines, likewise: a test runner's sum of what it ran is there."""
    return "\n".join(_output_lines(output)[-LAST_OF_PASS:])


def _output_lines(output: str) -> list[str]:
    lines = [_plain(line) for line in _ESCAPES.sub("", output).splitlines()]
    return [line for line in lines if line.strip()]


def _plain(line: str) -> str:
    kept = "".join(one if one.isprintable() else " " for one in line).rstrip()
    return kept if len(kept) <= LINE_CHARACTERS else f"{kept[: LINE_CHARACTERS - 1]}…"
