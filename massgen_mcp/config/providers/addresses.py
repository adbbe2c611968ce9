"""What an address says by itself. Pure."""

import ipaddress
from urllib.parse import urlsplit


def is_loopback(url: str) -> bool:
    """Whether the address is on this machine."""
    host = host_in(url)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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


def same_address(one: str, other: str) -> bool:
    return one.rstrip("/") == other.rstrip("/")


def is_safe_url(url: str) -> bool:
    """Encrypted, or within this machine; without credentials and a query."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if not host or "@" in parts.netloc or parts.query or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(url))
