"""Writes docs/README.md, the index of all pages.

Which page is for whom stands here; its line there is its own first heading and sentence.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from docs.markdown import WRITTEN

DOCS = Path(__file__).parent
PAGE = DOCS / "README.md"

GROUPS: Mapping[str, Sequence[str]] = {
    "The first hour": ("tutorial", "guarantees", "clients", "default-teams", "local-models", "troubleshooting"),
    "Using it": (
        *(
            "cli",
            "interactive",
            "run-page",
            "web",
            "mcp-app",
            "python",
            "agents-api",
            "code-work",
            "review",
            "commands",
        ),
        *("mcp-servers", "nested-runs", "claude-code", "acp", "ag2", "massgen-configs"),
        *("budget", "costs", "stats", "evaluation", "comparison"),
    ),
    "Running it for others": ("security", "serving", "providers-traffic", "versions"),
    "Reference": ("tools", "mcp", "config", "backends", "records", "runs", "coordination"),
    "Inside": ("architecture", "wires", "simulation"),
    "Decisions": ("decisions",),
}
"""Pages by name, in the order in which they are read."""

HEAD = f"""\
# Documentation

{WRITTEN}
Begin with the [README](../README.md). [CONTRIBUTING](../CONTRIBUTING.md) says where things are in the code.
"""


def page(docs: Path = DOCS) -> str:
    parts = [HEAD]
    for group, names in GROUPS.items():
        lines = [_line(docs, path) for name in names for path in sorted(docs.glob(f"{name}.md"))]
        parts.append(f"\n## {group}\n\n{''.join(lines)}")
    return "".join(parts)


def without_place(docs: Path = DOCS) -> list[str]:
    """Pages that no group names."""
    placed = {path for names in GROUPS.values() for name in names for path in docs.glob(f"{name}.md")}
    return sorted(str(path.relative_to(docs)) for path in {*docs.rglob("*.md")} - placed - {docs / PAGE.name})


def _line(docs: Path, path: Path) -> str:
    heading, _, text = path.read_text(encoding="utf-8").partition("\n")
    said = "" if path.parent != docs else _first_sentence(text)
    return f"- [{heading.removeprefix('# ')}]({path.relative_to(docs)}){f': {said}' if said else ''}\n"


def _first_sentence(text: str) -> str:
    """Of the paragraph below the title, up to a colon, without links; empty where something else stands there."""
    paragraph = next((part for part in text.split("\n\n") if part.strip() and not part.lstrip().startswith("<!--")), "")
    if not re.match(r"\w|`\w|\[\w", paragraph.strip()):
        return ""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
    return re.split(r"(?<=[.?!])\s|:\s", plain)[0].rstrip(":.") + "."
