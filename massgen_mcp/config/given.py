"""What callers give, as types that cost no import: how a winner is found, and which files agents may use."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict


class PathEntry(TypedDict, total=False):
    """`permission` is `read` (the default) or `write`."""

    path: str
    permission: Literal["read", "write"]


Paths = Sequence[str | PathEntry | Mapping[str, str]]


GivenDecide = Literal["auto", "vote", "checks", "synthesise"]
"""A judge has a config of its own."""
