"""How a person gets into the pages beside a server over HTTP: by a token that is written into them, or by signing in at
the authorization server. Which sign-ins are right says `SignIn`; who may come then, `Tokens`.
"""

import secrets
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from massgen_mcp.server.http.gate import Pages
from massgen_mcp.server.http.oauth import SignIn, SignInRefused
from massgen_mcp.server.http.serving import HttpSettings
from massgen_mcp.server.http.tokens import Tokens, TokensUnknowable
from massgen_mcp.web.app import COOKIE, HEADERS, cookie_name, is_asked, keep, page_of_runs, pages

LOGIN, BACK = "/login", "/login/callback"
SIGN_IN = "massgen-sign-in"
"""The cookie of a sign-in that is under way: its secret, and the page to go on with."""
SIGN_IN_SECONDS = 600


def login_pages(answers: ASGIApp, settings: HttpSettings, *, encrypted: bool) -> Pages:
    """The pages, behind whose login `answers` is. `encrypted`: browsers come by https."""
    name = cookie_name(COOKIE, encrypted=encrypted)
    oauth = settings.oauth
    if oauth is None or oauth.client is None:
        return Pages(pages(login={}).routes, answers, is_asked, name)
    ours = urlsplit(oauth.resource)
    sign_in = SignIn(oauth, oauth.client, f"{ours.scheme}://{ours.netloc}{BACK}")
    known = Tokens(None, None, oauth.resource, settings.people).with_sessions(sign_in)
    return Pages(_routes(sign_in, known, encrypted=encrypted), answers, is_asked, name, sign_in)


def _routes(sign_in: SignIn, known: Tokens, *, encrypted: bool) -> Sequence[Route]:
    login = {"at": sign_in.host}
    shown = [route for route in pages(login=login).routes if isinstance(route, Route)]

    def own_page(to: str) -> str:
        """`to`, if it is a page of ours."""
        path, _, _ = to.partition("?")
        return to if any(route.path_regex.match(path) for route in shown) else "/"

    async def begin(request: Request) -> Response:
        """Sends the browser to the authorization server."""
        secret = secrets.token_urlsafe(32)
        try:
            reply = RedirectResponse(await sign_in.address(secret), 303, HEADERS)
        except TokensUnknowable:
            return away()
        to = own_page(request.query_params.get("to", ""))
        keep(reply, SIGN_IN, f"{secret}{to}", SIGN_IN_SECONDS, encrypted=encrypted, samesite="lax")
        return reply

    async def back(request: Request) -> Response:
        """Takes the browser that comes from there."""
        secret, slash, to = request.cookies.get(cookie_name(SIGN_IN, encrypted=encrypted), "").partition("/")
        try:
            session = await sign_in.session(secret, request.query_params, known)
        except SignInRefused as refused:
            return page_of_runs(login, 403, str(refused))
        except TokensUnknowable:
            return away()
        reply = RedirectResponse(own_page(slash + to), 303, HEADERS)
        keep(reply, COOKIE, session, encrypted=encrypted)
        keep(reply, SIGN_IN, "", 0, encrypted=encrypted, samesite="lax")
        return reply

    def away() -> Response:
        return page_of_runs(login, 503, f"{sign_in.host} isn't responding. Try again in a moment.")

    return [*shown, Route(LOGIN, begin, methods=["GET"]), Route(BACK, back, methods=["GET"])]
