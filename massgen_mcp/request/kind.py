"""The kinds of runs by how they were started."""

from typing import Literal

RunKind = Literal["single", "batch", "eval"]
"""`batch`, `eval`: one of many that `massgen batch` or `massgen eval` started. Lists and statistics have only single
runs unless they are asked for others."""
ListedKind = Literal[RunKind, "all"]
"""The kind of the runs that are listed or counted."""
