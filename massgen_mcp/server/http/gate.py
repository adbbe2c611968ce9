"""The way of an HTTP request to the protocol: who may come in, and how much at once.

In this order: size, host, origin, token, body, room. What holds no secret is open: `/healthz`, the document below
`/.well-known/` by which a client finds out where tokens come from, and that there is nothing else: a client that looks
for a way to get a token has to hear that there is none, not that it needs one for that.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from resource import RLIMIT_NOFILE, getrlimit

import anyio
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.auth.settings import AuthSettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from massgen_mcp.people import set_current_user
from massgen_mcp.server.http.connections import MAX_HEAD_BYTES, Strangers
from massgen_mcp.server.http.operating import METRICS, READY, Operating
from massgen_mcp.server.http.tokens import Tokens, TokensUnknowable
from massgen_mcp.server.transport import MAX_BODY_BYTES, answer_to_half_characters

HEALTH = "/healthz"
PATH = "/mcp"
MAX_HEADERS = 100
MAX_REQUESTS = 512
"""Whole requests with a token that are answered at once, waiting calls included, begun streams not: ..."""
MAX_STREAMS = 4096
"""... so many go on at once, or half as many as files can be open; for one more the oldest ends."""
WRONG_TOKENS = 60
"""After so many from one address within `WRONG_SECONDS`, tokens from there that were never right wait for their turn. A
right one may be among them: behind a proxy all clients have one address.
"""
WRONG_SECONDS = 60.0
TURN_SECONDS = 0.1
"""Between two turns: so often the authorization server is asked at most then."""
KEPT = 1024
"""Addresses and tokens are remembered, so many of each."""


@dataclass(frozen=True, slots=True)
class Pages:
    """What browsers see: `pages`, which hold nothing, and `api`, which answers on the paths that it `guards`. `cookie`:
    the name of that with the token, or with one of `sessions`, which are good for nothing else.
    """

    pages: Sequence[BaseRoute]
    api: ASGIApp
    guards: Callable[[str], bool]
    cookie: str
    sessions: TokenVerifier | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """The clients that a gate lets in: by token, by the host that they name, and by the page that they come from."""

    tokens: Tokens
    hosts: Sequence[str]
    origins: Sequence[str] = ()
    strangers: Strangers = field(default_factory=Strangers)
    """Connections that have shown no token yet."""


class Gate:
    """Passes on the requests that name a host of ours, come from no foreign page and carry a token that is right."""

    def __init__(
        self,
        app: ASGIApp,
        admission: Admission,
        *,
        guards: Callable[[str], bool] = lambda path: path.rstrip("/") == PATH,
        public: ASGIApp | None = None,
        operating: Operating | None = None,
        beside: "Pages | None" = None,
    ) -> None:
        """`guards`: whether a path needs a token; `public` answers on every other one. `beside`: what browsers see."""
        self._app = app
        self._guards = guards
        self._operating = operating
        self._beside = beside
        self._admission = admission
        self._wrong = _WrongTokens()
        self._turn = anyio.Lock()
        self._tokens = tokens = admission.tokens
        self._public = public or _public(tokens, beside.pages if beside else ())
        room = _Room(self._answer_admitted, admission.strangers, self._wrong, tokens)
        self._guarded = _guarded(room, tokens)
        self._by_cookie = _guarded(room, tokens.with_sessions(beside.sessions if beside else None))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def counted(message: Message) -> None:
            if self._operating is not None and message["type"] == "http.response.start":
                self._operating.replies[message["status"]] += 1
            await send(message)

        return await self._let_in(scope, receive, counted)

    async def _answer_admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What is asked by somebody whose token is right."""
        app = self._app
        if self._operating is not None and scope["path"].rstrip("/") == METRICS:
            app = self._operating.metrics
        elif self._beside is not None and self._beside.guards(scope["path"]):
            app = self._beside.api
        await app(scope, receive, send)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        header = Headers(scope=scope).getlist
        refusal = _oversized(scope)
        if refusal is None and scope["path"] == HEALTH:
            refusal = JSONResponse({"status": "ok"})
        elif refusal is None and self._operating is not None and scope["path"] == READY:
            refusal = await self._operating.ready()
        elif refusal is None:
            refusal = self._misdirected(header)
        if refusal is not None:
            return await refusal(scope, receive, send)
        shown, guarded = header("authorization"), self._guarded
        if self._beside is not None and self._beside.guards(scope["path"]):
            if not shown and (token := cookie_parser("; ".join(header("cookie"))).get(self._beside.cookie)):
                shown, guarded = [f"Bearer {token}"], self._by_cookie
                scope = {**scope, "headers": [*scope["headers"], (b"authorization", shown[0].encode("latin-1"))]}
        elif not self._guards(scope["path"]):
            return await self._public(scope, receive, send)
        refusal = self._foreign(header)
        if refusal is not None:
            return await refusal(scope, receive, send)
        return await self._with_token(scope, receive, send, shown, guarded)

    async def _with_token(
        self, scope: Scope, receive: Receive, send: Send, brought: list[str], guarded: ASGIApp
    ) -> None:
        if len(brought) > 1:
            scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0].lower() != b"authorization"]}
        peer = scope["client"][0]
        token = brought[0].partition(" ")[2] if len(brought) == 1 else ""
        if token and self._tokens.asks_others(token) and self._wrong.too_many(peer, token):
            async with self._turn:
                await anyio.sleep(TURN_SECONDS)

        async def seen(message: Message) -> None:
            if token and message["type"] == "http.response.start" and message["status"] == 401:
                self._wrong.count(peer)
            await send(message)

        try:
            await guarded(scope, receive, seen)
        except TokensUnknowable:
            refusal = PlainTextResponse("The authorization server isn't responding", 503, {"Retry-After": "5"})
            await refusal(scope, receive, send)

    def _misdirected(self, header: Callable[[str], list[str]]) -> Response | None:
        if [host.lower() for host in header("host")] not in ([host] for host in self._admission.hosts):
            return PlainTextResponse("Invalid Host header", 421)
        return None

    def _foreign(self, header: Callable[[str], list[str]]) -> Response | None:
        if any(origin not in self._admission.origins for origin in header("origin")):
            return PlainTextResponse("Invalid Origin header", 403)
        return None


class _Room:
    """Takes a request in whose token is right: its connection is no stranger's any more, and while there is room for
    it, it goes on.
    """

    def __init__(self, app: ASGIApp, strangers: Strangers, wrong: "_WrongTokens", tokens: Tokens) -> None:
        self._app = app
        self._tokens = tokens
        self._strangers = strangers
        self._wrong = wrong
        self._under_way = 0
        self._streams: dict[anyio.CancelScope, None] = {}
        """The oldest first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._strangers.no_more(scope["client"])
        self._wrong.was_right(scope["user"].access_token.token)
        begun = await _body(receive)  # a slow body takes no place from requests that are whole
        if not begun:
            return None
        whole = b"".join(message.get("body", b"") for message in begun)
        if scope["method"] == "POST" and (half := answer_to_half_characters(whole)) is not None:
            response = JSONResponse(half.model_dump(mode="json", by_alias=True, exclude_unset=True))
            return await response(scope, receive, send)
        if self._under_way >= MAX_REQUESTS:
            busy = PlainTextResponse("Too many requests at once", 503, {"Retry-After": "1"})
            return await busy(scope, receive, send)
        self._under_way += 1
        holds_place = True

        async def seen(message: Message) -> None:
            nonlocal holds_place
            if message["type"] == "http.response.start" and scope["method"] == "GET" and _is_stream(message):
                holds_place, self._under_way = False, self._under_way - 1
                self._begin(stream)
            await send(message)

        with anyio.CancelScope() as stream:
            try:
                with set_current_user(self._tokens.find_user(scope["user"].access_token)):
                    await self._app(scope, _going_on(begun, receive), seen)
            finally:
                self._streams.pop(stream, None)
                self._under_way -= holds_place
        if stream.cancelled_caught:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        return None

    def _begin(self, stream: anyio.CancelScope) -> None:
        self._streams[stream] = None
        if len(self._streams) > min(MAX_STREAMS, getrlimit(RLIMIT_NOFILE)[0] // 2):
            oldest = next(iter(self._streams))
            del self._streams[oldest]
            oldest.cancel()


def _is_stream(started: Message) -> bool:
    return any(name.lower() == b"content-type" and b"event-stream" in value for name, value in started["headers"])


class _WrongTokens:
    """How many each address has brought lately, and which tokens were right."""

    def __init__(self) -> None:
        self._of_peer: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._right: OrderedDict[bytes, None] = OrderedDict()

    def too_many(self, peer: str, token: str) -> bool:
        began, count = self._of_peer.get(peer, (0.0, 0))
        if count < WRONG_TOKENS or time.monotonic() - began > WRONG_SECONDS:
            return False
        return sha256(token.encode()).digest() not in self._right

    def count(self, peer: str) -> None:
        now = time.monotonic()
        began, count = self._of_peer.pop(peer, (now, 0))
        self._of_peer[peer] = (began, count + 1) if now - began <= WRONG_SECONDS else (now, 1)
        _keep(self._of_peer)

    def was_right(self, token: str) -> None:
        digest = sha256(token.encode()).digest()
        self._right.pop(digest, None)
        self._right[digest] = None
        _keep(self._right)


def _keep(entries: "OrderedDict[str, tuple[float, int]] | OrderedDict[bytes, None]") -> None:
    if len(entries) > KEPT:
        entries.popitem(last=False)


def _guarded(app: ASGIApp, tokens: Tokens) -> ASGIApp:
    """The SDK's own way from a bearer token to a request that is allowed."""
    named = _settings(tokens)
    metadata = build_resource_metadata_url(named.resource_server_url) if named and named.resource_server_url else None
    required = RequireAuthMiddleware(AuthContextMiddleware(app), list(tokens.scopes), metadata)
    return AuthenticationMiddleware(required, backend=BearerAuthBackend(tokens))


def _public(tokens: Tokens, pages: Sequence[BaseRoute]) -> ASGIApp:
    named = _settings(tokens)
    if named is None or named.resource_server_url is None:
        return Starlette(routes=pages)  # there is no such document, and no authorization server to be looked for
    documents = create_protected_resource_routes(
        resource_url=named.resource_server_url,
        authorization_servers=[named.issuer_url],
        scopes_supported=named.required_scopes,
        resource_name="massgen-mcp",
    )
    return Starlette(routes=[*pages, *documents])


def _settings(tokens: Tokens) -> AuthSettings | None:
    """The addresses as the SDK wants them: spelt as they were given, because clients compare them so."""
    if tokens.issuer is None:
        return None
    return AuthSettings.model_validate(
        {
            "issuer_url": tokens.issuer,
            "resource_server_url": tokens.resource,
            "required_scopes": list(tokens.scopes) or None,
            "validate_token_resource": False,  # `Tokens` does
        }
    )


def _oversized(scope: Scope) -> Response | None:
    raw: list[tuple[bytes, bytes]] = scope["headers"]
    size = len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(name) + len(value) for name, value in raw)
    if len(raw) > MAX_HEADERS or size > MAX_HEAD_BYTES:
        return PlainTextResponse("Request header fields too large", 431)
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
