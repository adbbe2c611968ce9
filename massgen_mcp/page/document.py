"""The HTML documents of this package, each in one file that needs nothing else: style, drawing script, a script that
brings the data, and for a page that stays the data itself.

The policy in it allows its own style and script by their hashes, so that nothing that was written in a run can be
executed, and nothing in the file can ask anybody for anything.
"""

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

from massgen_mcp.page.data import RunPage
from massgen_mcp.statistics.sums import Statistics

DRAWING = ("dom.js", "markdown.js", "differences.js", "timeline.js", "run.js")
"""What every page of a run is drawn with, in this order one script. It ends with `draw(run, into)`."""
STATISTICS_DRAWING = ("dom.js", "statistics.js")


def report(page: RunPage) -> bytes:
    """The page as HTML, with its data in it."""
    return with_data(document("saved.js"), page.model_dump())


def statistics_page(statistics: Statistics) -> bytes:
    """What many runs come to, as one page like that of a run."""
    from massgen_mcp.statistics.words import as_worded  # a page of a run needs none of it

    html = document("saved.js", styles_too=("statistics.css",), drawing=STATISTICS_DRAWING)
    return with_data(html, as_worded(statistics))


def with_data(html: str, page: dict[str, Any]) -> bytes:
    """A document of this package with the data that its script draws."""
    before, _, after = html.partition("@data@")
    data = json.dumps(page, ensure_ascii=False, separators=(",", ":"))
    # Inside a script element only a `<` could end it, and in JSON it stands in strings alone.
    return "".join((before, data.replace("<", "\\u003c"), after)).encode("utf-8", "replace")


@cache
def document(
    source: str, further: str = "", styles_too: tuple[str, ...] = (), drawing: tuple[str, ...] = DRAWING
) -> str:
    """The page with `@data@` where data may stand. `source`: the file that brings the data and calls `draw`. `further`:
    what the policy allows besides, in its own words. `styles_too`: further style sheets. `drawing`: where `draw` is.
    """
    folder = files("massgen_mcp.page") / "template"
    style = "\n".join((folder / name).read_text("utf-8").strip() for name in ("run.css", *styles_too))
    parts = "\n".join((folder / name).read_text("utf-8").strip() for name in (*drawing, source))
    script = f"(() => {{\n'use strict';\n{parts}\n}})();"
    policy = (
        f"default-src 'none'; script-src {hash_source(script)}; style-src {hash_source(style)}; "
        f"base-uri 'none'; form-action 'none'{further}"
    )
    html = (folder / "run.html").read_text("utf-8").replace("@policy@", policy).replace("@style@", style)
    return html.replace("@script@", script)


def hash_source(text: str) -> str:
    """Return the hash by which a policy allows a script or a style sheet."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
