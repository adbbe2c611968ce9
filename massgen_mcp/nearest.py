"""The name that somebody most likely meant. Pure."""

from collections.abc import Iterable

MAX_CHARACTERS = 100
"""Of what somebody wrote so much is looked at."""


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """`cutoff`: how much alike they must be, from 0 to 1. Upper and lower case are alike."""
    from difflib import get_close_matches  # who writes everything right needs none of it

    names = {one.lower(): one for one in known}
    near = get_close_matches(name[:MAX_CHARACTERS].lower(), names, n=1, cutoff=cutoff)
    return names[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing where no known name is near."""
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near else ""
