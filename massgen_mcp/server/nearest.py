"""The name that somebody most likely meant."""

from collections.abc import Sequence
from difflib import get_close_matches


def nearest(name: str, known: Sequence[str]) -> str:
    """ ", did you mean 'x'?", or nothing where no known name is near."""
    found = get_close_matches(name, known, 1)
    return f", did you mean {found[0]!r}?" if found else ""
