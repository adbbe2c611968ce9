"""Tokens of an OAuth 2 authorization server: signed ones (JWT, with the server's published keys) or opaque ones, which
the server is asked about (introspection, RFC 7662). Browsers sign in there (OpenID Connect).

Right is a token that this issuer gave out for our URL, to a subject that the operator named, with the scopes wanted,
and that has not run out.
"""

import hmac
import json
import math
import time
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

import anyio
import httpx2
import jwt
from mcp.server.auth.provider import AccessToken, TokenVerifier

from massgen_mcp.config.access.connections import open_client
from massgen_mcp.config.providers.addresses import is_safe_url
from massgen_mcp.errors import BadVariable, MassgenError
from massgen_mcp.server.http.tokens import TokensUnknowable

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Only those whose keys may be published."""
LEEWAY_SECONDS = 30
KEYS_SECONDS = 600.0
"""So long the issuer's keys are used before they are fetched again ..."""
KEYS_AGAIN_SECONDS = 30.0
"""... and not before this for a token that names an unknown key ..."""
RETRY_SECONDS = 3.0
"""... nor before this where that failed; keys that are known serve meanwhile."""
ANSWER_SECONDS = 30.0
"""What the authorization server says of a token holds so long."""
ASKED_SECONDS = 5.0
ASKED_AT_ONCE = 16
MAX_TOKEN = 8192
MAX_SESSION = 4000
"""Characters; browsers keep no longer cookie."""
SESSION_SECONDS = 8 * 3600
"""So long a browser stays signed in, however short its ID token holds: with some servers that is five minutes."""
MAX_DOCUMENT = 1024 * 1024
KEPT = 1024
HTTP_OK, HTTP_REFUSED = 200, 400


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """`resource`: our URL, as clients know it. `introspection`: where opaque tokens are asked about, with the
    `client`'s id and secret; without it tokens are signed. `jwks`: where the keys are, else the issuer says it. As the
    same client browsers sign in; its secret may be empty then.
    """

    issuer: str
    resource: str
    subjects: Sequence[str]
    scopes: Sequence[str] = ()
    jwks: str | None = None
    introspection: str | None = None
    client: tuple[str, str] | None = None
    people: bool = False
    """Whether it is known elsewhere who may come, and as whom; nobody is named in `subjects` then."""

    def check(self) -> None:
        """Raises `MassgenError` invalid_arguments."""
        for option, url in (
            ("--oauth-issuer", self.issuer),
            ("--public-url", self.resource),
            ("--oauth-jwks-url", self.jwks),
            ("--oauth-introspection-url", self.introspection),
        ):
            if url is not None and not is_safe_url(url):
                raise MassgenError("invalid_arguments", f"{option}: expected an https:// URL without a query")
        if self.people and self.subjects:
            raise MassgenError("invalid_arguments", "--people lists the allowed users, so leave out --oauth-subject")
        if not self.subjects and not self.people:
            raise MassgenError(
                "invalid_arguments",
                "--oauth-issuer needs --oauth-subject: name the user who may act as you, with your keys and files",
            )
        needs = "--oauth-introspection-url" if self.introspection else "signing in with --oauth-scope"
        if (self.introspection or (self.scopes and self.client)) and not (self.client and self.client[1]):
            raise MassgenError(
                "invalid_arguments",
                f"{needs} needs MASSGEN_MCP_OAUTH_CLIENT_ID and MASSGEN_MCP_OAUTH_CLIENT_SECRET",
            )


class OAuthTokens:
    def __init__(self, settings: OAuthSettings) -> None:
        self.issuer = settings.issuer
        self.scopes = settings.scopes
        self._settings = settings
        self.asks = settings.introspection is not None
        self._source = _Asked(settings) if settings.introspection else _Signed(settings)

    async def verify_token(self, token: str) -> AccessToken | None:
        """None for a token that is not right. Raises `TokensUnknowable`."""
        if len(token) > MAX_TOKEN or not token.isascii():
            return None
        claims = await self._source.claims(token)
        return self.access(token, claims) if claims is not None else None

    def access(self, token: str, claims: Mapping[str, Any]) -> AccessToken | None:
        """What a token with these claims is good for; None: for nothing."""
        subject, ends = claims.get("sub"), claims.get("exp")
        if not (self._settings.people or subject in self._settings.subjects) or not isinstance(subject, str):
            return None
        if not isinstance(ends, int | float):
            return None
        if claims.get("iss", self.issuer) != self.issuer or self._settings.resource not in _audience(claims):
            return None
        given = claims.get("scope", claims.get("scp", ""))
        scopes = given.split() if isinstance(given, str) else [str(scope) for scope in cast("list[object]", given)]
        return AccessToken(
            token=token,
            client_id=str(claims.get("client_id") or claims.get("azp") or subject),
            scopes=scopes,
            expires_at=int(ends) + LEEWAY_SECONDS,
            resource=self._settings.resource,
            subject=str(subject),
            claims={"iss": self.issuer},
        )


def _audience(claims: Mapping[str, Any]) -> list[object]:
    audience = claims.get("aud", [])
    return cast("list[object]", audience) if isinstance(audience, list) else [audience]


class _Signed:
    """JWTs, by the keys that the issuer publishes. They are taken until `leeway` after their end."""

    def __init__(self, settings: OAuthSettings, leeway: int = LEEWAY_SECONDS) -> None:
        self._settings = settings
        self._leeway = leeway
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._fetched = self._tried = -math.inf
        self._fetching = anyio.Lock()

    async def claims(self, token: str) -> Mapping[str, Any] | None:
        try:
            header = jwt.get_unverified_header(token)
            if (key := await self._key(header.get("kid"))) is None:
                return None
            return jwt.decode(
                token,
                key,
                algorithms=[name for name in ALGORITHMS if name == header.get("alg")],
                audience=self._settings.resource,
                issuer=self._settings.issuer,
                leeway=self._leeway,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError:
            return None

    async def _key(self, kid: str | None) -> jwt.PyJWK | None:
        async with self._fetching:
            now = time.monotonic()
            known = kid in self._keys or (kid is None and len(self._keys) == 1)
            if now - self._fetched > (KEYS_SECONDS if known else KEYS_AGAIN_SECONDS):
                await self._fetch_unless_just_tried(now, known=known)
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid)

    async def _fetch_unless_just_tried(self, now: float, *, known: bool) -> None:
        if now - self._tried > RETRY_SECONDS:
            self._tried = now
            try:
                return await self._fetch()
            except TokensUnknowable:
                if not known:
                    raise
        if not known:
            raise TokensUnknowable("the server couldn't fetch the issuer's keys just now")
        return None

    async def _fetch(self) -> None:
        url = self._settings.jwks or await _published(self._settings.issuer, "jwks_uri")
        document = await _document(url)
        try:
            self._keys = {key.key_id: key for key in jwt.PyJWKSet.from_dict(document)}
        except jwt.PyJWTError as error:
            raise TokensUnknowable(f"{url} contains no keys") from error
        self._fetched = time.monotonic()


class _Asked:
    """Opaque tokens, of which the authorization server says what they are good for."""

    def __init__(self, settings: OAuthSettings) -> None:
        self._settings = settings
        self._answers: OrderedDict[bytes, tuple[float, Mapping[str, Any] | None]] = OrderedDict()
        self._asking = anyio.CapacityLimiter(ASKED_AT_ONCE)

    async def claims(self, token: str) -> Mapping[str, Any] | None:
        digest = sha256(token.encode()).digest()
        known = self._answers.get(digest)
        if known is not None and time.monotonic() - known[0] < ANSWER_SECONDS:
            return known[1]
        async with self._asking:
            url = self._settings.introspection or ""
            form = {"token": token, "token_type_hint": "access_token"}
            document = await _document(url, form=form, client=self._settings.client)
        claims = document if document.get("active") is True else None
        self._answers.pop(digest, None)
        self._answers[digest] = (time.monotonic(), claims)
        if len(self._answers) > KEPT:
            self._answers.popitem(last=False)
        return claims


class SignInRefused(Exception):
    """Why, in words for the person."""


class SignIn:
    """How a browser gets a session: by an authorization code with PKCE, for an ID token of this issuer's.

    State, nonce and verifier all come from one secret, which the browser keeps in a cookie. So nothing is kept here,
    another process may go on with a sign-in, and whoever has a code and not the cookie has nothing. A session is that
    secret with the ID token that has its nonce: an ID token that was given out for anything else is none.
    """

    def __init__(self, settings: OAuthSettings, client: tuple[str, str], back: str) -> None:
        """`back`: our address to which browsers return."""
        self.issuer, self.scopes, self.host = settings.issuer, settings.scopes, urlsplit(settings.issuer).netloc
        self._client, self._back = client, back
        for_us = replace(settings, resource=client[0], introspection=None)
        self._tokens, self._signed = OAuthTokens(for_us), _Signed(for_us, SESSION_SECONDS)
        self._asking = anyio.CapacityLimiter(ASKED_AT_ONCE)

    async def address(self, secret: str) -> str:
        """Where the browser with this secret is sent to sign in. Raises `TokensUnknowable`."""
        async with self._asking:
            where = await _published(self.issuer, "authorization_endpoint")
        asked = {
            "response_type": "code",
            "client_id": self._client[0],
            "redirect_uri": self._back,
            "scope": " ".join(("openid", *self.scopes)),
            "state": _derived(secret, "state"),
            "nonce": _derived(secret, "nonce"),
            "code_challenge": _base64(sha256(_derived(secret, "verifier").encode()).digest()),
            "code_challenge_method": "S256",
        }
        return f"{where}?{urlencode(asked)}"

    async def session(self, secret: str, query: Mapping[str, str], known: TokenVerifier) -> str:
        """A session for the browser with this secret (empty: it has none). `query`: that with which it came back;
        `known`: whose sessions are taken. Raises `SignInRefused`, `TokensUnknowable`.
        """
        right, state = _derived(secret, "state").encode(), query.get("state", "").encode()
        if not (secret and hmac.compare_digest(right, state)) or query.get("iss", self.issuer) != self.issuer:
            raise SignInRefused("This sign-in has expired or was started in another browser. Sign in again.")
        if (error := query.get("error")) is not None:
            denied = "refused to sign you in, or you cancelled" if error == "access_denied" else f"failed: {error[:80]}"
            raise SignInRefused(f"{self.host} {denied}.")
        form = {
            "grant_type": "authorization_code",
            "code": query.get("code", ""),
            "redirect_uri": self._back,
            "client_id": self._client[0],
            "code_verifier": _derived(secret, "verifier"),
        }
        async with self._asking:
            where = await _published(self.issuer, "token_endpoint")
            client, fine = self._client if self._client[1] else None, (HTTP_OK, HTTP_REFUSED)
            reply = await _document(where, form=form, client=client, fine=fine)
        if not isinstance(token := reply.get("id_token"), str):
            raise SignInRefused(
                f"{self.host} didn't confirm this sign-in. Each sign-in works only once: sign in again."
            )
        if lacking := set(self.scopes) - set(str(reply.get("scope", " ".join(self.scopes))).split()):
            raise SignInRefused(f"You don't have access to this server: {self.host} doesn't grant you {min(lacking)}.")
        if len(session := f"{secret}.{token}") > MAX_SESSION:
            raise SignInRefused(
                f"Your profile from {self.host} is too long for a cookie; "
                f"ask the operator of {self.host} to include fewer groups in it."
            )
        claims = await self._claims(session)
        if claims is None or int(claims["exp"]) + LEEWAY_SECONDS < time.time():
            raise SignInRefused(f"The reply from {self.host} belongs to another sign-in. Sign in again.")
        if await known.verify_token(session) is None:
            raise SignInRefused(
                f"{self.host} signed you in as “{claims['sub']}”, but that user doesn't have access to this server. "
                "Ask the server's operator."
            )
        return session

    async def verify_token(self, token: str) -> AccessToken | None:
        """What a session is good for. Raises `TokensUnknowable`."""
        claims = await self._claims(token)
        if claims is None:
            return None
        ends = int(claims.get("iat", 0)) + SESSION_SECONDS
        return self._tokens.access(token, {**claims, "exp": ends, "scope": " ".join(self.scopes)})

    async def _claims(self, session: str) -> Mapping[str, Any] | None:
        secret, _, token = session.partition(".")
        claims = await self._signed.claims(token) if len(session) <= MAX_SESSION and session.isascii() else None
        ours = claims and claims.get("nonce") == _derived(secret, "nonce")
        return claims if claims and ours and claims.get("azp", self._client[0]) == self._client[0] else None


def _derived(secret: str, what: str) -> str:
    return _base64(hmac.digest(secret.encode(), what.encode(), "sha256"))


def _base64(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()


async def _published(issuer: str, name: str) -> str:
    """The address that the issuer's metadata have under `name` (RFC 8414, OpenID Connect Discovery)."""
    parts = urlsplit(issuer)
    base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    for url in (
        f"{base}/.well-known/oauth-authorization-server{path}",
        f"{base}{path}/.well-known/openid-configuration",
    ):
        try:
            document = await _document(url)
        except TokensUnknowable:
            continue
        where = document.get(name)
        if document.get("issuer") == issuer and isinstance(where, str) and is_safe_url(where):
            return where
    raise TokensUnknowable(f"{issuer} doesn't publish its {name}")


async def _document(
    url: str,
    *,
    form: Mapping[str, str] | None = None,
    client: tuple[str, str] | None = None,
    fine: Sequence[int] = (HTTP_OK,),
) -> dict[str, Any]:
    """The JSON object at `url`. Raises `TokensUnknowable`, also for a status that is not `fine`."""
    try:
        with anyio.fail_after(ASKED_SECONDS):
            async with open_client(url, timeout=ASKED_SECONDS) as http:
                reply = await (
                    http.post(url, data=form, auth=client or httpx2.USE_CLIENT_DEFAULT) if form else http.get(url)
                )
        if reply.status_code not in fine or len(reply.content) > MAX_DOCUMENT:
            raise TokensUnknowable(f"{url} returned {reply.status_code}")
        document = json.loads(reply.content)
    except BadVariable as error:
        raise TokensUnknowable(f"cannot query {url}: {error}") from error
    except (httpx2.HTTPError, TimeoutError, ValueError) as error:
        raise TokensUnknowable(f"cannot query {url}: {type(error).__name__}") from error
    if not isinstance(document, dict):
        raise TokensUnknowable(f"{url} didn't return a JSON object")
    return cast("dict[str, Any]", document)
