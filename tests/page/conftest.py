"""One browser for the tests of the page."""

from collections.abc import Iterator

import pytest

from tests.browser import Browser
from tests.harness import home

__all__ = ["home"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with Browser.start() as started:
        yield started
