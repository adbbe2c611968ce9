"""What an address says by itself, and `OLLAMA_HOST` as Ollama itself reads it (`envconfig/config.go`). Pure."""

import ipaddress
import re
from functools import lru_cache
from urllib.parse import urlsplit, urlunsplit

OLLAMA_PORT = 11434
"""Where Ollama listens unless told otherwise."""
_TO_LISTEN_AT = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what is compared, nothing listens
"""Addresses that a server is given for "everywhere", and where it is then found."""


@lru_cache(maxsize=1024)
def is_loopback(url: str) -> bool:
    """Whether the address is on this machine. Every call asks it of each provider."""
    host = host_in(url)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_this_machine(url: str) -> bool:
    """Return whether a connection to the address stays on this machine, also by a name or an address that no key is
    trusted to.
    """
    host = host_in(url)
    if is_loopback(url) or host in _TO_LISTEN_AT or host.endswith(".localhost"):
        return True
    try:
        mapped = getattr(ipaddress.ip_address(host), "ipv4_mapped", None)
    except ValueError:
        return False
    return mapped is not None and mapped.is_loopback


_PRIVATE_NAMES = re.compile(
    r"[a-z][a-z0-9_-]*|(?:[a-z0-9_-]+\.)+(?:localhost|local|lan|internal|home\.arpa)", re.IGNORECASE
)
"""Names that no public name server has: without a dot, or below a name that is reserved for private networks."""


@lru_cache(maxsize=1024)
def is_private(url: str) -> bool:
    """Return whether the address is on this machine or in a private network. Looks no name up."""
    host = host_in(url)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return _PRIVATE_NAMES.fullmatch(host) is not None
    mapped = getattr(address, "ipv4_mapped", None) or address
    return not (mapped.is_global or mapped.is_multicast or mapped.is_reserved)


def host_in(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def port_in(url: str) -> int | None:
    try:
        return urlsplit(url).port
    except ValueError:
        return None


_ENDPOINTS = ("/chat/completions", "/completions", "/responses", "/messages", "/api/chat", "/api/generate", "/models")


def repair_base_url(url: str, *, versioned: bool = False) -> str:
    """Return the root of an API where a whole endpoint was given, or two slashes in a row. `versioned`: a server whose
    API lies at `/v1`, which is added where no path is given. Scheme, host and port stay; what is no address, too.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if not parts.netloc or parts.query or parts.fragment:
        return url
    path = re.sub(r"/{2,}", "/", parts.path)
    for endpoint in _ENDPOINTS:
        if path.rstrip("/").endswith(endpoint):
            path = path.rstrip("/").removesuffix(endpoint)
        if endpoint == "/messages" and parts.path.rstrip("/").endswith("/v1/messages"):
            path = path.removesuffix("/v1")  # this API's client adds it itself
    if versioned and path in ("", "/"):
        path = "/v1"
    if path == parts.path:
        return url
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def same_address(one: str, other: str) -> bool:
    return one.rstrip("/") == other.rstrip("/")


def is_safe_url(url: str) -> bool:
    """Encrypted, or within this machine; without credentials and a query."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if not host or "@" in parts.netloc or "?" in url or "#" in url:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(url))


def ollama_address(address: str) -> str:
    """The root of its API. Scheme, host and port may be missing; empty stays empty."""
    if not address:
        return ""
    scheme, _, place = address.rpartition("://")
    default_port = {"http": 80, "https": 443}.get(scheme, OLLAMA_PORT)
    bare_ipv6 = place.count(":") > 1 and "[" not in place
    try:
        parts = urlsplit(f"//[{place}]" if bare_ipv6 else f"//{place}")
        host, port = parts.hostname or "127.0.0.1", parts.port or default_port
    except ValueError:
        return address  # no address; whoever uses it says so
    host = _TO_LISTEN_AT.get(host, host)
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme or 'http'}://{shown}:{port}{parts.path.rstrip('/')}"
