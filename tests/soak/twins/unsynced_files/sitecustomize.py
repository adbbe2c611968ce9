"""A known-bad twin: a product that has neither files nor directories synced before it relies on them."""

import os


def _later(descriptor: object) -> None:
    """The operating system writes it when it likes."""


os.fsync = _later
