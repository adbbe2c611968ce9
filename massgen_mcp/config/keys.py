"""The one place where a key is read from the environment. Must not know whose key it is, nor where it goes."""

from collections.abc import Mapping


def read_key(environ: Mapping[str, str], variable: str) -> str | None:
    """The key in this variable, without blanks around it; None when there is none."""
    return environ.get(variable, "").strip() or None
