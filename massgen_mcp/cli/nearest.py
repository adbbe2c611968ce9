"""The name that somebody most likely meant."""

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, or nothing where no known name is near."""
    from difflib import get_close_matches  # a right command line needs none of it

    near = get_close_matches(name[:80].lower(), list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
