"""What an HTTP connection may cost us: how large and how slow a request may be, and how many may come without a token.

A layer on the protocol of uvicorn, which has no deadline for a request, checks no header that arrives in one piece, and
counts strangers and friends alike.
"""

import asyncio
from typing import Any, Literal

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

HEAD_SECONDS = 10.0
"""From the beginning of a connection, or of a further request on it, to the end of the request's headers."""
BODY_SECONDS = 30.0
"""From there to the end of its body."""
REFUSED_SECONDS = 2.0
"""For so long a client that was refused may go on sending, which is dropped. A close with unread data would be a reset,
and take the answer with it.
"""
IDLE_SECONDS = 15
"""Between two requests."""
MAX_HEAD_BYTES = 16_384
"""Of a request line with its headers; a last piece of `PIECE_BYTES` may go beyond it."""
STRANGERS_OF_PEER = 256
"""Connections from one address that have not brought a token yet ..."""
STRANGERS = 512
"""... and from all."""
ACCEPTED_AT_ONCE = 64
"""Connections taken in one turn of the event loop: far fewer than strangers fit, so a token is read before that many
later ones could push its connection out.
"""
PIECE_BYTES = 4096

PeerAddress = tuple[str, int]


class Strangers:
    """The connections that have not brought a token yet. Where they are too many the oldest is closed, never the new
    one refused: who has a token shows it at once.
    """

    def __init__(self) -> None:
        self._waiting: dict[PeerAddress, asyncio.Transport] = {}

    def arrived(self, client: PeerAddress, transport: asyncio.Transport) -> None:
        self._waiting[client] = transport
        of_peer = [other for other in self._waiting if other[0] == client[0]]
        if len(of_peer) > STRANGERS_OF_PEER:
            self._waiting.pop(of_peer[0]).abort()
        elif len(self._waiting) > STRANGERS:
            self._waiting.pop(next(iter(self._waiting))).abort()

    def no_more(self, client: PeerAddress) -> None:
        """It brought the token, or it is gone."""
        self._waiting.pop(client, None)


class LimitedConfig(uvicorn.Config):
    """uvicorn's settings for `app`, whose connections are counted in `strangers`."""

    def __init__(self, app: ASGIApp, strangers: Strangers) -> None:
        super().__init__(
            app,
            http=_LimitedProtocol,
            ws="none",
            proxy_headers=False,
            log_level="error",
            access_log=False,
            backlog=ACCEPTED_AT_ONCE,
            timeout_keep_alive=IDLE_SECONDS,
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        )
        self.strangers = strangers


class _LimitedProtocol(H11Protocol):
    """One connection."""

    def __init__(
        self,
        config: LimitedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._strangers = config.strangers
        self._awaited: Literal["head", "body"] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        super().connection_made(transport)
        self._await("head")
        if self.client is not None:
            self._strangers.arrived(self.client, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._await(None)
        if self.client is not None:
            self._strangers.no_more(self.client)

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), PIECE_BYTES):  # h11 looks at the size of what is not complete yet
            if self.transport.is_closing() or self._refused:
                return
            super().data_received(data[start : start + PIECE_BYTES])
        if not self._refused:
            self._await_the_rest()

    def send_400_response(self, msg: str) -> None:
        """As uvicorn's, which closes the connection at once."""
        self._refused = True
        self._await(None)
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        answer = [h11.Response(status_code=400, headers=headers), h11.Data(data=msg.encode()), h11.EndOfMessage()]
        for part in answer:
            self.transport.write(self.conn.send(part) or b"")
        self.transport.write_eof()
        self._deadline = self.loop.call_later(REFUSED_SECONDS, self.transport.abort)

    def on_response_complete(self) -> None:
        self._await(None)
        super().on_response_complete()
        if self.conn.their_state is not h11.IDLE or self.conn.trailing_data[0]:
            self._await_the_rest()

    def _await_the_rest(self) -> None:
        if self.conn.their_state is h11.IDLE:
            self._await("head")
        else:
            self._await("body" if self.conn.their_state is h11.SEND_BODY else None)

    def _await(self, what: Literal["head", "body"] | None) -> None:
        """Close the connection if this is not there in time; what was awaited already keeps its deadline."""
        if what == self._awaited:
            return
        self._awaited = what
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if what is not None:
            seconds = HEAD_SECONDS if what == "head" else BODY_SECONDS
            self._deadline = self.loop.call_later(seconds, self.transport.abort)
