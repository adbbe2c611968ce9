"""The layout of a command's network in bubblewrap: the address inside at which each pair of host and port is reached.

Pure. `network` opens it.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

PROXY = ("127.66.255.254", 3128)
"""Where the proxy for HTTP listens, inside."""


@dataclass(frozen=True, slots=True)
class ListedPair:
    """A host and a port that may be connected to, and the address inside that leads there."""

    host: str
    port: int
    address: str

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def list_pairs(endpoints: Iterable[str]) -> tuple[ListedPair, ...]:
    """The pairs of a list of `host:port`, each name with an address of its own."""
    found = [(host, int(port)) for host, _, port in (endpoint.rpartition(":") for endpoint in dict.fromkeys(endpoints))]
    names = [*dict.fromkeys(host for host, _ in found)]
    return tuple(ListedPair(host, port, _choose_address(host, names.index(host) + 1)) for host, port in found)


def _choose_address(host: str, number: int) -> str:
    if host == "localhost":
        return "127.0.0.1"
    try:
        address = ipaddress.IPv4Address(host)
    except ValueError:
        return f"127.66.{number // 250}.{number % 250 + 1}"
    return "127.0.0.1" if address.is_unspecified else host


def format_hosts(endpoints: Iterable[str]) -> str:
    """The text of `/etc/hosts` inside."""
    lines = dict.fromkeys(f"{pair.address} {pair.host}" for pair in list_pairs(endpoints) if pair.address != pair.host)
    return "\n".join(dict.fromkeys(("127.0.0.1 localhost", "::1 localhost", *lines, "")))


def list_proxy_variables() -> dict[str, str]:
    """Variables by which programs find the proxy."""
    address = f"http://{PROXY[0]}:{PROXY[1]}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
    own = "localhost,127.0.0.1,::1"
    return {**dict.fromkeys(names, address), "NO_PROXY": own, "no_proxy": own, "NODE_USE_ENV_PROXY": "1"}
