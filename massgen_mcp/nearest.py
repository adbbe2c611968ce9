"""The name that somebody most likely meant. Pure."""

from collections.abc import Iterable

MAX_CHARACTERS = 100
"""Of what somebody wrote so much is looked at."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # who writes everything right needs none of it

    return next(iter(get_close_matches(name[:MAX_CHARACTERS].lower(), list(known), n=1)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing where no known name is near."""
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near else ""
