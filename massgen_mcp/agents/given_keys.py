"""Keys that a Python program gives as text. They stay in the memory of this process, under names of variables that
nobody has set: a config may hold such a name, and a run of this process finds the key there.
"""

from collections.abc import Mapping
from itertools import count

from massgen_mcp.config.access.acceptances import PAIRS_VARIABLE, Pair
from massgen_mcp.config.access.key_hosts import host_of

_NAMES = (f"MASSGEN_GIVEN_KEY_{number}" for number in count(1))
_given: dict[str, str] = {}
"""Names by key."""
_hosts: dict[Pair, None] = {}
"""Where each may go: whoever writes a key and an address side by side means it so."""


def name_of(key: str, address: str | None) -> str:
    """The name for this key, which may go to this address; without one, where keys of its kind may go."""
    name = _given.get(key) or _given.setdefault(key, next(_NAMES))
    if address:
        _hosts[Pair(key=name, host=host_of(address))] = None
    return name


def with_given_keys(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment of a run in this process."""
    if not _given:
        return environ
    pairs = " ".join([environ.get(PAIRS_VARIABLE, ""), *map(str, _hosts)]).strip()
    return {**environ, **{name: key for key, name in _given.items()}, PAIRS_VARIABLE: pairs}
