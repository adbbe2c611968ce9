"""A known-bad twin: a product that never has its journals synced."""

import os


def _later(descriptor: int) -> None:
    """The operating system writes it when it likes."""


os.fdatasync = _later
