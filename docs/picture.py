"""`python -m docs.picture`: draws the picture of the README anew, light and dark. It is the page of a real run of the
scripted example, as chromium shows it.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

from massgen_mcp.cli.massgen_mcp.verbs.demo import CONFIG, QUESTION
from tests.browser import Browser

HERE = Path(__file__).parent
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTH, HEIGHT = 840, 640


def draw() -> None:
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, "-m", "massgen_mcp.cli", "--config", f"@examples/{CONFIG}", QUESTION]
        environ = {**os.environ, "MASSGEN_MCP_HOME": f"{work}/home"}
        subprocess.run(command, cwd=work, env=environ, check=True)  # noqa: S603 - our own command
        (page,) = Path(work).rglob("report.html")
        with Browser.start() as browser:
            for scheme in SCHEMES:
                with browser.tab(page, width=WIDTH, height=HEIGHT, scheme=scheme) as tab:
                    tab.drawn()
                    tab.picture(HERE / f"run-{scheme}.png", whole=False)


if __name__ == "__main__":
    draw()
