"""How this program connects to a server: through which proxy, and with which certificates.

The one place that reads `HTTPS_PROXY` and its like, and that makes HTTP clients. A server of this machine is never
asked through a proxy, nor is a model server of the user's own in a private network: discovery finds it without one.
"""

import ipaddress
import os
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from massgen_mcp.certificates import find_named, trusted, untrusting
from massgen_mcp.config.providers.addresses import host_in, is_private, is_this_machine, port_in
from massgen_mcp.errors import BadVariable

if TYPE_CHECKING:
    import httpx2

_LOGIN = re.compile(r"^([a-z][a-z0-9+.-]*:/*)?.*@", re.IGNORECASE)
_SCHEMES = ("http", "https", "socks5", "socks5h")
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ProxySetting:
    """A variable that names a proxy, and the address in it."""

    variable: str
    """`HTTPS_PROXY`, or where the system keeps it."""
    address: str

    def __str__(self) -> str:
        return f"{self.variable}={self.shown}"

    @property
    def shown(self) -> str:
        """The address without user and password."""
        return _LOGIN.sub(lambda found: f"{found[1] or ''}***@", self.address)

    @property
    def url(self) -> str:
        return self.address if "://" in self.address else f"http://{self.address}"

    def require_usable(self) -> None:
        """Raises `BadVariable` for an address that no client can use."""
        remedy = "write it as http://HOST:PORT, or unset it"
        if "@" in self.address:
            remedy = "write it as http://USER:PASSWORD@HOST:PORT, with %XX for special characters, or unset it"
        try:
            parts = urlsplit(self.url)
            host, _ = parts.hostname, parts.port
        except ValueError as error:
            raise BadVariable(self.variable, self.shown, _describe_address_fault(error), remedy) from None
        if parts.scheme.lower() not in _SCHEMES:
            raise BadVariable(self.variable, self.shown, f"massgen doesn't support {parts.scheme} proxies", remedy)
        if not host or re.search(r"[\s\"'<>\\]", self.url):
            raise BadVariable(self.variable, self.shown, "not a proxy address", remedy)
        if parts.scheme.lower().startswith("socks") and find_spec("socksio") is None:
            message = "a SOCKS proxy, which needs the Python package socksio"
            install = (
                "run `pip install socksio` in massgen-mcp's environment, set an http:// proxy, or unset the variable"
            )
            raise BadVariable(self.variable, self.shown, message, install)


def find_proxy(url: str, *, own_server: bool = False) -> ProxySetting | None:
    """Return the proxy that requests to `url` go through; None: they go straight there. `own_server`: a model server of
    the user's own.
    """
    if is_this_machine(url) or (own_server and is_private(url)):
        return None
    settings = _read_settings()
    scheme = urlsplit(url).scheme.lower()
    name = next((name for name in (scheme, "all") if settings.get(name)), None)
    if name is None or _is_excluded(url, settings.get("no", "")):
        return None
    return _make_setting(name, settings[name])


def name_page_senders(proxy: ProxySetting | None) -> str:
    """Return, in words, what may have sent a web page in place of a server's reply."""
    if proxy is None:
        return "a firewall or the network's login portal"
    return f"the proxy set by {proxy} or a firewall behind it"


def list_proxies() -> list[ProxySetting]:
    """Return every proxy that is set, whether a request needs it or not."""
    settings = _read_settings()
    return [_make_setting(name, settings[name]) for name in ("http", "https", "all") if settings.get(name)]


def list_bad_variables() -> Iterator[BadVariable]:
    """Yield what is wrong with the variables, whether a request needs them or not."""
    checks: list[Callable[[], object]] = [proxy.require_usable for proxy in list_proxies()]
    if (
        find_named() is not None
    ):  # else there is no variable to look at, and the system's certificates take time to load
        checks.insert(0, trusted)
    for check in checks:
        try:
            check()
        except BadVariable as fault:
            yield fault


def require_connection(url: str, *, own_server: bool = False) -> None:
    """Raises `BadVariable` if a variable that a request to `url` needs cannot be used."""
    if (proxy := find_proxy(url, own_server=own_server)) is not None:
        proxy.require_usable()
    if url.lower().startswith("https:"):
        trusted()


def open_client(
    url: str,
    *,
    timeout: "float | httpx2.Timeout",
    own_server: bool = False,
    headers: Mapping[str, str] | None = None,
    hooks: "Mapping[str, list[Callable[..., Coroutine[Any, Any, None]]]] | None" = None,
) -> "httpx2.AsyncClient":
    """Return a client for requests to the host of `url` alone; it follows no redirect. Raises `BadVariable`."""
    import httpx2  # here: a process that asks no server starts without it

    require_connection(url, own_server=own_server)
    proxy = None
    if (found := find_proxy(url, own_server=own_server)) is not None:
        proxy = httpx2.Proxy(found.url)
        if found.url.lower().startswith("https:"):
            proxy.ssl_context = trusted()
    return httpx2.AsyncClient(
        proxy=proxy,
        trust_env=False,
        verify=untrusting() if url.lower().startswith("http:") else trusted(),
        timeout=timeout,
        headers=headers,
        event_hooks=hooks,
        follow_redirects=False,
    )


def exempt_this_machine(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which programs that get the user's proxies ask servers of this machine without them."""
    if not any(environ.get(name) for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy")):
        return {}
    kept = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    hosts = [part.strip() for part in kept.split(",") if part.strip()]
    both = ",".join(dict.fromkeys((*hosts, *_LOCAL_NAMES)))
    return {"NO_PROXY": both, "no_proxy": both}


def _read_settings() -> Mapping[str, str]:
    from urllib.request import getproxies  # here: it imports a client of its own

    return getproxies()


def _make_setting(name: str, address: str) -> ProxySetting:
    variables = (f"{name}_proxy", f"{name.upper()}_PROXY")
    variable = next((one for one in variables if os.environ.get(one)), f"the system's {name} proxy")
    return ProxySetting(variable, address)


def _describe_address_fault(error: ValueError) -> str:
    if "port" in str(error).lower():
        return "the port isn't a number from 0 to 65535"
    return "not a proxy address"


def _is_excluded(url: str, listed: str) -> bool:
    """Return whether `NO_PROXY` names the host: as it is, by a domain above it, by a network, or with its port."""
    host, scheme = host_in(url), urlsplit(url).scheme.lower()
    port = port_in(url) or _USUAL_PORTS.get(scheme)
    for entry in listed.split(","):
        wanted = entry.strip().lower()
        if "://" in wanted:
            of_scheme, _, wanted = wanted.partition("://")
            if of_scheme not in ("all", scheme):
                continue
        if wanted == "*" or (wanted and _is_named(host, port, wanted)):
            return True
    return False


def _is_named(host: str, port: int | None, wanted: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(wanted.strip("[]"), strict=False)
    except ValueError:
        pass  # a name, or an address with a port
    name, _, its_port = wanted.rpartition(":")
    if name and its_port.isdigit():
        if int(its_port) != port:
            return False
        wanted = name.strip("[]")
    domain = wanted.removeprefix("*").removeprefix(".")
    return host == domain or host.endswith(f".{domain}")
