"""A run's page as one file that needs nothing else: no network, no other file, no program but a browser.

Its policy allows nothing besides its own style and script, so that nothing in the file can ask anybody for anything.
"""

import json
from typing import Any

from massgen_mcp.page.data import RunPage
from massgen_mcp.page.document import document


def report(page: RunPage) -> bytes:
    """The page as HTML, with its data in it."""
    return with_data(document("saved.js"), page.model_dump())


def with_data(html: str, page: dict[str, Any]) -> bytes:
    """A document of this package with the data that its script draws."""
    before, _, after = html.partition("@data@")
    data = json.dumps(page, ensure_ascii=False, separators=(",", ":"))
    # Inside a script element only a `<` could end it, and in JSON it stands in strings alone.
    return "".join((before, data.replace("<", "\\u003c"), after)).encode("utf-8", "replace")
