"""The lines of a check's output that tell why it failed. Pure."""

import re
from itertools import pairwise

MAX_CHARACTERS = 2_000
MAX_TELLING = 20
"""So many of the lines that look like a failure are shown, and at least `LAST_LINES` of the end."""
LAST_LINES = 10
LINE_CHARACTERS = 200

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_TELLING = re.compile(
    r"\b(?:FAIL(?:ED|URE|URES|S)?|ERRORS?|Error|\w+Error|Exception|panic(?:ked)?|assert\w*|fatal|not ok|expected)\b"
    r"|^E\s|^\s*[✗✕✘\u00d7]|: error\b",
    re.IGNORECASE,
)


def excerpt_of(output: str) -> str:
    """At most `MAX_CHARACTERS`, from the end where there is more; without colours and other control characters."""
    lines = [_plain(line) for line in _ESCAPES.sub("", output).splitlines()]
    lines = [line for line in lines if line.strip()]
    telling = [place for place, line in enumerate(lines) if _TELLING.search(line)][:MAX_TELLING]
    places = sorted({*telling, *range(max(0, len(lines) - LAST_LINES), len(lines))})
    shown = [lines[places[0]]] if places else []
    for before, place in pairwise(places):
        shown += ["…"] if place > before + 1 else []
        shown.append(lines[place])
    text = "\n".join(shown)
    return text if len(text) <= MAX_CHARACTERS else f"…{text[1 - MAX_CHARACTERS :]}"


def _plain(line: str) -> str:
    kept = "".join(one if one.isprintable() else " " for one in line).rstrip()
    return kept if len(kept) <= LINE_CHARACTERS else f"{kept[: LINE_CHARACTERS - 1]}…"
