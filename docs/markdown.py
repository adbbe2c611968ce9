"""Parts of Markdown that the generated pages are made of."""

import re
from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Cells may hold Markdown; an upright bar in one is escaped."""
    escaped = ([re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in line] for line in lines)
    head, *rows = (f"| {' | '.join(row)} |\n" for row in (columns, *escaped))
    return "".join([head, "|---" * len(columns), "|\n", *rows])


def code(*names: str) -> str:
    """The names as they are written in a program, with commas."""
    return ", ".join(f"`{name}`" for name in names)


def block(language: str, text: str) -> str:
    return f"```{language}\n{text.strip()}\n```\n"


WRITTEN = "<!-- Written by `make docs` from the code; do not edit. -->\n"
"""The line below the title of a generated page."""


def anchor(heading: str) -> str:
    """What a link to a heading ends with, as GitHub makes it; the same one again has a number added there."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.replace("`", "").strip().lower()).replace(" ", "-")
