"""Which keys this process holds: what has to be kept out of everything that leaves it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from massgen_mcp.config.environment import KEY_VARIABLES, called_a_secret, is_model_key
from massgen_mcp.redaction import Redactor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from massgen_mcp.config.models.backends import BackendConfig

_ADDRESSES = re.compile(r"(PROXY|_URL|_ENDPOINT|_URI|_DSN)$", re.IGNORECASE)


def redactor_for(
    environ: Mapping[str, str], backends: "Iterable[BackendConfig]" = (), further: Iterable[str] = ()
) -> Redactor:
    """What takes this environment's keys out of text: those of every known provider, those that `backends` name, those
    in the `further` variables, the logins of agent CLIs, whatever is called a key, a token or a password, and passwords
    in addresses.

    The same environment gives the same object.
    """
    return _redactor(tuple(_values(environ, tuple(backends), tuple(further))))


def without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a program of the user's that has nothing to do with models: without our own settings
    and the keys of models. Logins to other services stay, also those whose name says that they are for git.
    """

    def is_ours(name: str) -> bool:
        return name in KEY_VARIABLES or name.startswith("MASSGEN_") or (is_model_key(name) and "GIT" not in name)

    return {name: value for name, value in environ.items() if not is_ours(name)}


@lru_cache(maxsize=8)
def _redactor(values: tuple[tuple[str, str], ...]) -> Redactor:
    return Redactor(dict(values))


def _values(
    environ: Mapping[str, str], backends: "tuple[BackendConfig, ...]", further: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    known = KEY_VARIABLES | {*further}
    for name in sorted(known.intersection(environ)):
        yield name, environ[name]
    for name, value in sorted(environ.items()):
        if name not in known and called_a_secret(name):
            yield name, value
        elif "@" in value and _ADDRESSES.search(name):
            yield from ((name, secret) for secret in _passwords(value))
    if backends:
        from massgen_mcp.config.access import members  # with all of the config, which an output alone doesn't need

        for backend in backends:
            yield from members.secrets(backend, environ)


def _passwords(address: str) -> Iterator[str]:
    """The password in an address."""
    try:
        password = urlsplit(address).password
    except ValueError:
        return
    if password:
        yield password
