"""Whether the request of a try has left this process: only its HTTP client knows, and only the bill needs it.

Must not know HTTP, nor what a try costs.
"""

from collections.abc import Callable
from contextvars import ContextVar

heard_by: ContextVar[Callable[[bool], None]] = ContextVar("heard_by", default=lambda _: None)
"""Whoever makes a try hears False when its request waits for a connection, True when it goes out. A backend that says
neither has sent it for all that is known.
"""
