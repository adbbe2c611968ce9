"""One browser for the tests of the pages behind a login."""

from tests.page.conftest import browser

__all__ = ["browser"]
