"""How Python programs name the files and directories that agents may use."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict


class PathEntry(TypedDict, total=False):
    """`permission` is `read` (the default) or `write`."""

    path: str
    permission: Literal["read", "write"]


Paths = Sequence[str | PathEntry | Mapping[str, str]]
