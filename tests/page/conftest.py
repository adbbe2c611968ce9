"""One browser for the tests of the page; without one, or without axe, they are left out, and that is said aloud."""

from collections.abc import Iterator

import pytest

from tests.browser import AXE, CHROMIUM, Browser
from tests.harness import home
from tests.page.app_host import BRIDGE

__all__ = ["home"]

NEEDED = (
    ("chromium", CHROMIUM is not None),
    ("axe-core (npm ci)", AXE.is_file()),
    ("ext-apps (npm ci)", BRIDGE.is_file()),
)
MISSING = [name for name, there in NEEDED if not there]

collect_ignore = ["test_in_a_browser.py", "test_run_app.py"] if MISSING else []


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with Browser.start() as started:
        yield started


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if MISSING:
        told = f"THE PAGE OF A RUN WAS NOT TRIED IN A BROWSER: {' and '.join(MISSING)} is not here"
        terminalreporter.write_line(told, red=True, bold=True)
