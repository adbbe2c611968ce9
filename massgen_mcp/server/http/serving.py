"""Serves MCP over Streamable HTTP to whoever brings a token: on this machine the one in this user's token file, on any
other address one that the operator chose, or one of an authorization server.
"""

import asyncio
import errno
import ipaddress
import logging
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from massgen_mcp.errors import MassgenError
from massgen_mcp.home import Home
from massgen_mcp.open_files import allow_open_files
from massgen_mcp.people import People
from massgen_mcp.server.build import BuiltServer
from massgen_mcp.server.http.connections import LimitedConfig, Strangers
from massgen_mcp.server.http.gate import PATH, Admission, Gate, Pages
from massgen_mcp.server.http.oauth import OAuthSettings, OAuthTokens
from massgen_mcp.server.http.operating import METRICS, Operating
from massgen_mcp.server.http.tokens import Tokens
from massgen_mcp.server.log import JsonLog
from massgen_mcp.server.transport import MAX_BODY_BYTES, leave

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
TOKEN_NAME = "http-token"  # noqa: S105 - a file's name
QUEUE = 2048
"""Connections that the operating system keeps until they are accepted."""
ANSWER_SECONDS = 0.4
"""What is under way when the server has to leave is answered within this time ..."""
UNWIND_SECONDS = 0.1
"""... and else gives up within this."""
FULL_SECONDS = 60.0
"""Between two lines that tell that there is no room for a further connection."""


@dataclass(frozen=True, slots=True)
class OwnToken:
    """A token that the operator chose, and where it comes from, to be told."""

    value: bytes = field(repr=False)
    source: str


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """`port` 0 takes a free one. `hosts` are names in the `Host` header, beside those of this machine, each with or
    without a port. `public_url` is how clients know us, where that is another address.
    """

    host: str = LOOPBACK
    port: int = 0
    token: OwnToken | None = None
    hosts: Sequence[str] = ()
    public_url: str | None = None
    oauth: OAuthSettings | None = None
    people: People | None = None
    as_json: bool = False
    """What is told on standard error when it serves: as JSON, like the log."""


async def serve_http(
    built: BuiltServer, home: Home, settings: HttpSettings, beside: Pages | None, *, on_leaving: Callable[[], None]
) -> None:
    """Serve until a signal, on which the process ends here. The address is told on standard error. `on_leaving` is
    called when the signal comes: calls that wait are to be answered at once.

    Raises `MassgenError` invalid_arguments for an address that is open to others without a token that was chosen, one
    that is not ours, or a port that is taken.
    """
    if settings.oauth is not None:
        settings.oauth.check()
    address = _address(settings.host)
    token = settings.token
    named = settings.oauth is not None or settings.people is not None
    if token is None and settings.people is None and ipaddress.ip_address(address).is_loopback:
        token = OwnToken(home.secret(TOKEN_NAME), str(home.path / f"{TOKEN_NAME}.secret"))
    if token is None and not named:
        raise MassgenError(
            "invalid_arguments",
            f"--host {settings.host}: others can reach this address, so the server needs a token: pass "
            "--token-file FILE or --oauth-issuer URL, or set MASSGEN_MCP_HTTP_TOKEN",
        )
    with bound(address, settings.port) as listener:
        shown, hosts = names(address, listener.getsockname()[1], settings)
        origins = _origins(hosts, settings)
        app = built.server.streamable_http_app(
            streamable_http_path=PATH,
            host=LOOPBACK,
            max_request_body_size=MAX_BODY_BYTES,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the gate does
        )
        strangers = Strangers()
        issued = OAuthTokens(settings.oauth) if settings.oauth else None
        tokens = Tokens(
            token.value if token else None, issued, settings.public_url or f"http://{shown}{PATH}", settings.people
        )
        operating = Operating(built.service.access)
        gate = Gate(
            app,
            Admission(tokens, hosts, origins, strangers),
            guards=lambda path: path.rstrip("/") in (PATH, METRICS),
            operating=operating,
            beside=beside,
        )
        greeting = _greeting(address, shown, token, settings)

        async def greet() -> None:
            for line in greeting:
                entry = JsonLog().format(logging.makeLogRecord({"name": __name__, "levelname": "INFO", "msg": line}))
                print(entry if settings.as_json else f"massgen-mcp: {line}", file=sys.stderr, flush=True)  # noqa: T201 - where an operator looks

        serving = HttpServer(LimitedConfig(gate, strangers), on_ready=greet, on_leaving=on_leaving)
        await serving.serve_until_signal(listener)


class HttpServer(uvicorn.Server):
    """Ends itself on a signal (the one of uvicorn would raise it again and die of it), and tells when it is ready."""

    def __init__(
        self, config: uvicorn.Config, *, on_ready: Callable[[], Awaitable[None]], on_leaving: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._on_leaving = on_leaving

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(QUEUE)  # uvicorn's backlog is both this and how many are accepted at once
        await self._on_ready()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def serve_until_signal(self, listener: socket.socket) -> None:
        allow_open_files()
        asyncio.get_running_loop().set_exception_handler(_Full())
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._heed, signals)
                await self.serve(sockets=[listener])
                leave()

    async def _heed(self, signals: AsyncIterator[signal.Signals]) -> None:
        async for _ in signals:
            self.should_exit = True
            self._on_leaving()
            await anyio.sleep(ANSWER_SECONDS)
            for connection in list(self.server_state.connections):
                connection.transport.abort()
            await anyio.sleep(UNWIND_SECONDS)
            leave()


class _Full:
    """Told of what goes wrong in the event loop: connections that there is no room for, of which asyncio tells one by
    one, many times in a second, are told of once in `FULL_SECONDS`.
    """

    def __init__(self) -> None:
        self._logged_at = -FULL_SECONDS

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
        elif time.monotonic() >= self._logged_at + FULL_SECONDS:
            self._logged_at = time.monotonic()
            logger.warning("new connections are waiting: too many open files (%s)", error.strerror)


def _address(host: str) -> str:
    """The address to bind. Raises `MassgenError` invalid_arguments."""
    if host == "localhost":
        return LOOPBACK
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise MassgenError("invalid_arguments", f"--host {host}: no such address") from error
    return str(found[0][4][0])


def names(address: str, port: int, settings: HttpSettings) -> tuple[str, list[str]]:
    """How the server is shown, and every `Host` that means it."""
    own = f"[{address}]" if ":" in address else address
    local = [LOOPBACK, "localhost", "[::1]"]
    every = ipaddress.ip_address(address).is_unspecified
    hosts = [f"{name}:{port}" for name in (*local, *(() if every or own in local else (own,)))]
    for name in settings.hosts:
        hosts += [name.lower()] if _has_port(name) else [name.lower(), f"{name.lower()}:{port}"]
    if settings.public_url:
        hosts.append(settings.public_url.split("/")[2].lower())
    return f"{LOOPBACK if every else own}:{port}", list(dict.fromkeys(hosts))


def _has_port(name: str) -> bool:
    return name.rpartition("]")[2].count(":") == 1


def _origins(hosts: Sequence[str], settings: HttpSettings) -> list[str]:
    """Pages of the server itself: encrypted ones come through a proxy, which has a name of its own."""
    proxied = {name.lower() for name in settings.hosts}
    if settings.public_url:
        proxied.add(settings.public_url.split("/")[2].lower())
    return [f"http://{host}" for host in hosts] + [f"https://{host}" for host in hosts if host in proxied]


def _greeting(address: str, shown: str, token: OwnToken | None, settings: HttpSettings) -> list[str]:
    lines = [f"http://{shown}{PATH}, bearer token in {token.source}"] if token else [f"http://{shown}{PATH}"]
    if settings.people:
        lines.append("each user sees only their own runs")
    if settings.oauth:
        lines.append(f"accepting tokens from {settings.oauth.issuer} for {settings.oauth.resource}")
    if not ipaddress.ip_address(address).is_loopback:
        lines.append(f"others can reach {settings.host} without encryption: put a TLS proxy in front of the server")
    return lines


def bound(address: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else "the highest port is 65535"
        raise MassgenError(
            "invalid_arguments", f"cannot listen on {address}:{port}: {reason}; omit --port to use a free port"
        ) from error
    return listener
