"""One browser for the tests of the pages on a port."""

from tests.harness import home
from tests.page.conftest import browser

__all__ = ["browser", "home"]
