"""`OLLAMA_HOST` as Ollama itself reads it (`envconfig/config.go`). Pure."""

from urllib.parse import urlsplit

PORT = 11434
"""Where Ollama listens unless told otherwise."""

_TO_LISTEN_AT = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what is compared, nothing listens
"""Addresses that a server is given for "everywhere", and where it is then found."""


def ollama_address(address: str) -> str:
    """The root of its API. Scheme, host and port may be missing; empty stays empty."""
    if not address:
        return ""
    scheme, _, place = address.rpartition("://")
    default_port = {"http": 80, "https": 443}.get(scheme, PORT)
    bare_ipv6 = place.count(":") > 1 and "[" not in place
    try:
        parts = urlsplit(f"//[{place}]" if bare_ipv6 else f"//{place}")
        host, port = parts.hostname or "127.0.0.1", parts.port or default_port
    except ValueError:
        return address  # no address; whoever uses it says so
    host = _TO_LISTEN_AT.get(host, host)
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme or 'http'}://{shown}:{port}{parts.path.rstrip('/')}"
