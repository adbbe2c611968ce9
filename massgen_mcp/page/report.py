"""A run's page as one file that needs nothing else: no network, no other file, no program but a browser.

The policy in it allows its own style and script by their hashes and nothing besides, so that nothing that was written
in a run can be executed, and nothing in the file can ask anybody for anything.
"""

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files

from massgen_mcp.page.data import RunPage

SCRIPTS = ("dom.js", "markdown.js", "differences.js", "timeline.js", "run.js")
"""In this order they are one script."""


def report(page: RunPage) -> bytes:
    """The page as HTML, with its data in it."""
    before, after = _template()
    data = json.dumps(page.model_dump(), ensure_ascii=False, separators=(",", ":"))
    # Inside a script element only a `<` could end it, and in JSON it stands in strings alone.
    return "".join((before, data.replace("<", "\\u003c"), after)).encode("utf-8", "replace")


@cache
def _template() -> tuple[str, str]:
    """What stands before the data, and after it."""
    folder = files("massgen_mcp.page") / "template"
    style = (folder / "run.css").read_text("utf-8").strip()
    parts = "\n".join((folder / name).read_text("utf-8").strip() for name in SCRIPTS)
    script = f"(() => {{\n'use strict';\n{parts}\n}})();"
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )
    html = (folder / "run.html").read_text("utf-8").replace("@policy@", policy).replace("@style@", style)
    before, _, after = html.replace("@script@", script).partition("@data@")
    return before, after


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
