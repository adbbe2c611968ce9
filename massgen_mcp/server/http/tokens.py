"""Which bearer tokens are right: the operator's own, and those that an authorization server issued for this server.

Must not know HTTP requests: it is asked for one token at a time, by the SDK.
"""

import hmac
from collections.abc import Sequence
from typing import Protocol

from mcp.server.auth.provider import AccessToken, TokenVerifier

OPERATOR = "operator"


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

    def __init__(self, own: bytes | None, issued: Issued | None, resource: str) -> None:
        self._own = own
        self._issued = issued
        self.resource = resource

    @property
    def issuer(self) -> str | None:
        return self._issued.issuer if self._issued else None

    @property
    def scopes(self) -> Sequence[str]:
        """What a token has to be good for."""
        return self._issued.scopes if self._issued else ()

    def asks_others(self, token: str) -> bool:
        """Whether somebody else has to be asked about this token."""
        return self._issued is not None and self._issued.asks and not self._is_own(token)

    async def verify_token(self, token: str) -> AccessToken | None:
        """None for a token that is not right. Raises `TokensUnknowable`."""
        if self._is_own(token):
            return AccessToken(token=token, client_id=OPERATOR, scopes=list(self.scopes), resource=self.resource)
        return await self._issued.verify_token(token) if self._issued else None

    def _is_own(self, token: str) -> bool:
        return self._own is not None and hmac.compare_digest(token.encode("utf-8", "surrogateescape"), self._own)
