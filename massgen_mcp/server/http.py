"""Serves MCP over Streamable HTTP on this machine only, to whoever can read this user's token file.

Any other bind is refused: it needs more than a token.
"""

import hmac
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from massgen_mcp.errors import MassgenError
from massgen_mcp.home import Home
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.server.connections import MAX_HEAD_BYTES, LimitedConfig, Strangers
from massgen_mcp.server.limits import MAX_BODY_BYTES, leave

LOOPBACK = "127.0.0.1"
TOKEN_NAME = "http-token"  # noqa: S105 - a file's name
MAX_HEADERS = 100
MAX_REQUESTS = 512
"""Whole requests of the owner of the token that are answered at once, waiting calls included."""
QUEUE = 2048
"""Connections that the operating system keeps until they are accepted."""
ANSWER_SECONDS = 0.4
"""What is under way when the server has to leave is answered within this time ..."""
UNWIND_SECONDS = 0.1
"""... and else gives up within this."""


async def serve_http(
    server: MassgenServer, home: Home, *, host: str, port: int, on_leaving: Callable[[], None]
) -> None:
    """Serve until a signal, on which the process ends here. `port` 0 takes a free one; the address is told on standard
    error. `on_leaving` is called when the signal comes: calls that wait are to be answered at once.

    Raises `MassgenError` invalid_arguments for a host that is not loopback or a port that is taken.
    """
    if host not in (LOOPBACK, "localhost"):
        raise MassgenError(
            "invalid_arguments", f"--host {host}: only {LOOPBACK} is served; put an authenticating proxy before it"
        )
    with _bound(port) as listener:
        port = listener.getsockname()[1]
        names = [f"{name}:{port}" for name in (LOOPBACK, "localhost")]
        app = server.streamable_http_app(
            host=LOOPBACK,
            max_request_body_size=MAX_BODY_BYTES,
            transport_security=TransportSecuritySettings(
                allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
            ),
        )
        strangers = Strangers()
        guarded = TokenAuth(app, token=home.secret(TOKEN_NAME), hosts=names, strangers=strangers)
        greeting = f"http://{LOOPBACK}:{port}/mcp, bearer token in {home.path / f'{TOKEN_NAME}.secret'}"
        await _Server(LimitedConfig(guarded, strangers), greeting, on_leaving).serve_until_signal(listener)


class _Server(uvicorn.Server):
    """Ends itself on a signal (the one of uvicorn would raise it again and die of it), and says when it is ready."""

    def __init__(self, config: uvicorn.Config, greeting: str, on_leaving: Callable[[], None]) -> None:
        super().__init__(config)
        self._greeting = greeting
        self._on_leaving = on_leaving

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(QUEUE)  # uvicorn's backlog is both this and how many are accepted at once
        print(f"massgen-mcp: {self._greeting}", file=sys.stderr, flush=True)  # noqa: T201 - where an operator looks

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def serve_until_signal(self, listener: socket.socket) -> None:
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


class TokenAuth:
    """Passes on the requests that name a host of ours, come from no foreign page and carry the token; checked in that
    order. At most `MAX_REQUESTS` at once.
    """

    def __init__(self, app: ASGIApp, *, token: bytes, hosts: list[str], strangers: Strangers) -> None:
        self._app = app
        self._token = token
        self._hosts = hosts
        self._origins = [f"http://{host}" for host in hosts]
        self._strangers = strangers
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        refusal = _oversized(scope) or self._refusal(_headers(scope))
        if refusal is not None:
            return await refusal(scope, receive, send)
        self._strangers.no_more(scope["client"])
        begun = await _body(receive)  # a slow body takes no place from requests that are whole
        if not begun:
            return None
        if self._under_way >= MAX_REQUESTS:
            busy = Response("Too many requests at once", status_code=503, headers={"Retry-After": "1"})
            return await busy(scope, receive, send)
        self._under_way += 1
        try:
            await self._app(scope, _going_on(begun, receive), send)
        finally:
            self._under_way -= 1

    def _refusal(self, header: Callable[[str], list[str]]) -> Response | None:
        if [host.lower() for host in header("host")] not in ([host] for host in self._hosts):
            return Response("Invalid Host header", status_code=421)
        if any(origin not in self._origins for origin in header("origin")):
            return Response("Invalid Origin header", status_code=403)
        match header("authorization"):
            case [value] if hmac.compare_digest(*_bearer(value, self._token)):
                return None
            case _:
                return Response("Unauthorized", status_code=401, headers={"WWW-Authenticate": "Bearer"})


def _bearer(value: str, token: bytes) -> tuple[bytes, bytes]:
    """What was brought and what is wanted; the scheme's name may be in any case."""
    scheme, _, brought = value.partition(" ")
    return brought.encode("latin-1") if scheme.lower() == "bearer" else b"", token


def _oversized(scope: Scope) -> Response | None:
    raw: list[tuple[bytes, bytes]] = scope["headers"]
    size = len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(name) + len(value) for name, value in raw)
    if len(raw) > MAX_HEADERS or size > MAX_HEAD_BYTES:
        return Response("Request header fields too large", status_code=431)
    return None


async def _body(receive: Receive) -> list[Message]:
    """The body, or more of it than is allowed; nothing if the client left first, which is no fault to be logged."""
    begun: list[Message] = []
    size = 0
    while size <= MAX_BODY_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return []
        begun.append(message)
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    return begun


def _going_on(begun: list[Message], receive: Receive) -> Receive:
    """`receive` as it was before `begun` was received."""
    left = iter(begun)

    async def again() -> Message:
        for message in left:
            return message
        return await receive()

    return again


def _headers(scope: Scope) -> Callable[[str], list[str]]:
    raw: list[tuple[bytes, bytes]] = scope["headers"]
    return lambda name: [value.decode("latin-1") for key, value in raw if key.decode("latin-1").lower() == name]


def _bound(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise MassgenError("invalid_arguments", f"cannot listen on {LOOPBACK}:{port}: {error.strerror}") from error
    return listener
