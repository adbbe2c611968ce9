"""`${NAME}` in a config: which variables of the environment it names, and what stands there in a run. Pure."""

import re
from collections.abc import Iterable, Mapping

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET = re.compile(r"(API|SECRET|ACCESS|AUTH|PRIVATE)[_-]?KEY$|TOKEN$|SECRET$|PASSWORD$|PASSWD$", re.IGNORECASE)
_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie"})


def called_a_secret(name: str) -> bool:
    """Whether a variable or a header of this name commonly holds a secret."""
    return bool(_SECRET.search(name)) or name.casefold() in _HEADERS


def variables_in(values: Iterable[str]) -> tuple[str, ...]:
    """The names of all variables, in their order and without repetitions."""
    return tuple(dict.fromkeys(name for value in values for name in _VARIABLE.findall(value)))


def filled(values: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The values with what stands in the variables. Raises `KeyError` with the name of one that is not set."""
    return {name: _VARIABLE.sub(lambda match: environ[match[1]], value) for name, value in values.items()}
