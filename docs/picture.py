"""`python -m docs.picture`: draws the picture of the README anew, light and dark. It is the page of the example run, as
chromium shows it.
"""

import tempfile
from pathlib import Path
from typing import Literal

import anyio

from docs.example_run import play_example
from tests.browser import Browser

HERE = Path(__file__).parent
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTH, HEIGHT = 840, 640


async def draw() -> None:
    with tempfile.TemporaryDirectory() as work:
        run = await play_example(Path(work))
        with Browser.start() as browser:
            for scheme in SCHEMES:
                with browser.tab(run.page, width=WIDTH, height=HEIGHT, scheme=scheme) as tab:
                    tab.drawn()
                    tab.picture(HERE / f"run-{scheme}.png", whole=False)


if __name__ == "__main__":
    anyio.run(draw)
