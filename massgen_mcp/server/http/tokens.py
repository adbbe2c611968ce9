"""Which bearer tokens are right: the operator's own, and those that an authorization server issued for this server.

Must not know HTTP requests: it is asked for one token at a time, by the SDK.
"""

import hmac
from collections.abc import Sequence
from typing import Protocol

from mcp.server.auth.provider import AccessToken, TokenVerifier

from massgen_mcp.people import OPERATOR, People, User


class TokensUnknowable(Exception):
    """The authorization server cannot be asked now, so nobody knows whether a token is right."""


class Issued(TokenVerifier, Protocol):
    """Tokens of an authorization server. `verify_token` raises `TokensUnknowable`."""

    issuer: str
    scopes: Sequence[str]
    asks: bool
    """Whether the server is asked about each token; else they are signed."""


class Tokens(TokenVerifier):
    """The tokens that this server takes. `resource` is the URL that they are for."""

    def __init__(
        self,
        own: bytes | None,
        issued: Issued | None,
        resource: str,
        people: People | None = None,
        sessions: TokenVerifier | None = None,
    ) -> None:
        self._own = own
        self._people = people
        self._issued = issued
        self._sessions = sessions
        self.resource = resource

    def with_sessions(self, sessions: TokenVerifier | None) -> "Tokens":
        """These tokens, and the sessions of browsers."""
        return Tokens(self._own, self._issued, self.resource, self._people, sessions)

    @property
    def issuer(self) -> str | None:
        return self._issued.issuer if self._issued else None

    @property
    def scopes(self) -> Sequence[str]:
        """What a token has to be good for."""
        return self._issued.scopes if self._issued else ()

    def asks_others(self, token: str) -> bool:
        """Whether somebody else has to be asked about this token."""
        known = self._is_own(token) or (self._people is not None and self._people.of_token(token) is not None)
        return self._issued is not None and self._issued.asks and not known

    async def verify_token(self, token: str) -> AccessToken | None:
        """None for a token that is not right. Raises `TokensUnknowable`."""
        if self._is_own(token):
            return self._access(token, None)
        if self._people and (known := self._people.of_token(token)):
            return self._access(token, known.name)
        access = await self._sessions.verify_token(token) if self._sessions else None
        if access is None and self._issued:
            access = await self._issued.verify_token(token)
        return access if access is None or self._people is None or self.find_user(access) else None

    def _access(self, token: str, name: str | None) -> AccessToken:
        client = name or OPERATOR
        return AccessToken(
            token=token, client_id=client, scopes=list(self.scopes), resource=self.resource, subject=name
        )

    def find_user(self, access: AccessToken) -> User | None:
        """Return the user of a valid token; None where no people are named, or the token names none of them."""
        if self._people is None:
            return None
        if access.claims is None:  # no authorization server has issued it
            return self._people.of_token(access.token) or self._people.operator
        return self._people.of_subject(access.subject or "")

    def _is_own(self, token: str) -> bool:
        return self._own is not None and hmac.compare_digest(token.encode("utf-8", "surrogateescape"), self._own)
