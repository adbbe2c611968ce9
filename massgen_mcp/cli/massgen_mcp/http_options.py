"""How HTTP is served, from the command line and the environment. Tokens come from files and variables only: a command
line is seen by everybody on the machine. Only a server that speaks HTTP loads it.
"""

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

from massgen_mcp.config.providers.addresses import is_safe_url
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import HTTP_TOKEN_VARIABLE, OAUTH_CLIENT_VARIABLE, OAUTH_SECRET_VARIABLE, PEOPLE_VARIABLE
from massgen_mcp.runs.host.announcing import Webhooks
from massgen_mcp.server.http.oauth import OAuthSettings
from massgen_mcp.server.http.serving import HttpSettings, OwnToken

LEAST_TOKEN = 16
_TOKEN = re.compile(rb"[A-Za-z0-9._~+/=-]+")
_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")


def http_settings(options: argparse.Namespace, environ: Mapping[str, str]) -> HttpSettings:
    """Raises `MassgenError` invalid_arguments."""
    for name in options.allowed_host:
        if not _HOST.fullmatch(name):
            raise MassgenError(
                "invalid_arguments", f"--allowed-host {name}: expected a host name, optionally with a port"
            )
    if options.public_url and not is_safe_url(options.public_url):
        raise MassgenError("invalid_arguments", "--public-url: expected an https:// URL without a query")
    Webhooks.of(environ)  # wrong ones are to be told now, not when a run has ended
    return HttpSettings(
        options.host,
        options.port,
        _token(options.token_file, environ),
        tuple(options.allowed_host),
        options.public_url,
        _oauth(options, environ) if options.oauth_issuer else None,
    )


def _token(file: Path | None, environ: Mapping[str, str]) -> OwnToken | None:
    if file is not None:
        try:
            with file.open("rb") as opened:
                return _own_token(opened.read(64 * 1024), str(file))
        except OSError as error:
            raise MassgenError("invalid_arguments", f"--token-file {file}: {error.strerror}") from error
    given = environ.get(HTTP_TOKEN_VARIABLE, "")
    return _own_token(given.encode(), HTTP_TOKEN_VARIABLE) if given.strip() else None


def _own_token(value: bytes, source: str) -> OwnToken:
    token = value.strip()
    if len(token) < LEAST_TOKEN or not _TOKEN.fullmatch(token):
        message = (
            f"{source} contains no usable token; use at least {LEAST_TOKEN} letters, digits and ._~+/=- on one line"
        )
        raise MassgenError("invalid_arguments", message)
    return OwnToken(token, source)


def _oauth(options: argparse.Namespace, environ: Mapping[str, str]) -> OAuthSettings:
    if not options.public_url:
        message = "--oauth-issuer needs --public-url: tokens are issued for the URL that clients use"
        raise MassgenError("invalid_arguments", message)
    client, secret = environ.get(OAUTH_CLIENT_VARIABLE, ""), environ.get(OAUTH_SECRET_VARIABLE, "")
    return OAuthSettings(
        options.oauth_issuer,
        options.public_url,
        tuple(options.oauth_subject),
        tuple(options.oauth_scope),
        options.oauth_jwks_url,
        options.oauth_introspection_url,
        (client, secret) if client else None,
        people=bool(options.people or environ.get(PEOPLE_VARIABLE)),
    )
