"""Writes the generated pages, and what else is made from the code: `python -m docs` all of it, `python -m docs NAME...`
what has these names.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import anyio

from docs import (
    config_reference,
    default_teams,
    events_schema,
    first_answers,
    index,
    massgen_configs,
    python_blocks,
    records_page,
    store_figures,
    tables,
    tools_page,
    transcript,
    troubleshooting,
    wires,
)
from massgen_mcp.server import front

DOCS = Path(__file__).parent
PAGES: Mapping[str, Callable[[], str | Awaitable[str]]] = {
    "backends": tables.page,
    "config": config_reference.page,
    "config.schema": config_reference.schema,
    "default-teams": default_teams.page,
    "events.schema": events_schema.page,
    "first-answers": first_answers.page,
    "massgen-configs": massgen_configs.page,
    "python": python_blocks.page,
    "records": records_page.page,
    "replies.schema": tools_page.schema,
    "serving": store_figures.page,
    "tools": tools_page.page,
    "transcript": transcript.page,
    "troubleshooting": troubleshooting.page,
    "wires": wires.page,
    "README": index.page,
}
"""What makes the text of each page; of python.md it is one list, of serving.md some figures. The index comes last,
because it reads the others.
"""


def place_of(name: str) -> Path:
    """The file of a page, or of what else is made from the code."""
    match name:
        case "first-answers":
            return front.ANSWERS
        case "transcript":
            return transcript.PAGE
        case "config.schema" | "events.schema" | "replies.schema":
            return DOCS / f"{name}.json"
        case _:
            return DOCS / f"{name}.md"


async def text_of(name: str) -> str:
    """The page as it has to be now."""
    made = PAGES[name]()
    return made if isinstance(made, str) else await made


async def main(names: list[str]) -> None:
    for name in names or PAGES:
        place_of(name).write_text(await text_of(name), encoding="utf-8")


if __name__ == "__main__":
    anyio.run(main, sys.argv[1:])
