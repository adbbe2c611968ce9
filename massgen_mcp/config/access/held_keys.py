"""Which keys this process holds: what has to be kept out of everything that leaves it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from massgen_mcp.config.access import agent_clis, members
from massgen_mcp.config.environment import called_a_secret
from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.config.providers.catalog import PROVIDERS
from massgen_mcp.redaction import Redactor

_ADDRESSES = re.compile(r"(PROXY|_URL|_ENDPOINT|_URI|_DSN)$", re.IGNORECASE)


def redactor_for(
    environ: Mapping[str, str], backends: Iterable[BackendConfig] = (), further: Iterable[str] = ()
) -> Redactor:
    """What takes this environment's keys out of text: those of every known provider, those that `backends` name, those
    in the `further` variables, the logins of agent CLIs, whatever is called a key, a token or a password, and passwords
    in addresses.

    The same environment gives the same object.
    """
    return _redactor(tuple(_values(environ, tuple(backends), tuple(further))))


@lru_cache(maxsize=8)
def _redactor(values: tuple[tuple[str, str], ...]) -> Redactor:
    return Redactor(dict(values))


def _values(
    environ: Mapping[str, str], backends: tuple[BackendConfig, ...], further: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    known = {name for row in PROVIDERS for name in row.key_variables}
    known |= {agent_clis.API_KEY, agent_clis.TOKEN}
    known.update(further)
    for name in sorted(known.intersection(environ)):
        yield name, environ[name]
    for name, value in sorted(environ.items()):
        if name not in known and called_a_secret(name):
            yield name, value
        elif "@" in value and _ADDRESSES.search(name):
            yield from ((name, secret) for secret in _passwords(value))
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
