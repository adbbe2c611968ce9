"""One browser for the tests of the pages on a port; without one, or without axe, they are left out."""

from tests.harness import home
from tests.page.conftest import MISSING, browser

__all__ = ["browser", "home"]

collect_ignore = ["test_in_a_browser.py"] if MISSING else []
