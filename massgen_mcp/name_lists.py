"""Lists of names in a sentence, the same everywhere that people and models read. Pure."""

from collections.abc import Iterable


def join_names(names: Iterable[str], last: str = "and") -> str:
    """Return `a`, `a and b`, or `a, b and c`; with `last="or"`, `a, b or c`."""
    *others, final = [*names] or [""]
    return f"{', '.join(others)} {last} {final}" if others else final
