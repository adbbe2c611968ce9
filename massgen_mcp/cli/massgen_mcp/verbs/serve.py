"""`massgen-mcp` without a verb: the server process, with state directory, run service, tools and transport."""

import argparse
import os
import re
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import anyio

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.providers.addresses import is_safe_url
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import (
    HTTP_TOKEN_VARIABLE,
    OAUTH_CLIENT_VARIABLE,
    OAUTH_SECRET_VARIABLE,
    PEOPLE_VARIABLE,
    STORE_VARIABLE,
    find_home,
)
from massgen_mcp.people import NOBODY, People, asked_by
from massgen_mcp.request.team import Team
from massgen_mcp.runs.host.announcing import Webhooks
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import open_engine
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.server.build import build_server
from massgen_mcp.server.http.oauth import OAuthSettings
from massgen_mcp.server.http.serving import HttpSettings, OwnToken
from massgen_mcp.server.log import start_log

LOOK_SECONDS = 1.0
"""So long `start_run` looks at most whether there are such models, imports and other callers included."""


async def run(options: argparse.Namespace, add: Callable[[MassgenServer], None] = lambda _: None) -> int:
    """Serve until the client or a signal ends it. Raises `MassgenError` when it cannot begin.

    `add` puts more on the server than ours: only the conformance suite of the protocol needs that.
    """
    home = find_home(os.environ)
    start_log(home.path, as_json=options.log_format == "json")
    service = RunService(open_engine(home, os.environ), os.environ)

    asking = anyio.Lock()
    silent = dict[tuple[str, str | None], float]()

    async def look_before(team: Team) -> str | None:
        if service.pool is not None:
            return None  # its models are asked on another machine
        from massgen_mcp.runs.doctor.preflight import MODEL_LISTS, TOOL_SECONDS, require_models  # for who starts a run

        with anyio.move_on_after(LOOK_SECONDS):
            async with asking:  # whoever comes second finds the list that the first one has read
                kept = home.path / MODEL_LISTS
                return await require_models(team.config, team.environ, kept, seconds=TOOL_SECONDS, silent=silent)
        return None

    early = options.front is not None
    people = people_of(options, os.environ)
    redactor = redactor_for(os.environ, further=people.variables if people else ())
    built = build_server(home, service, redactor, look_before=look_before, answered_early=early)
    add(built.server)
    if options.transport == "http":
        from massgen_mcp.server.http.serving import serve_http

        settings = replace(http_settings(options, os.environ), people=people)
        async with AsyncExitStack() as stack:
            stack.enter_context(asked_by(NOBODY if people else None))  # until a token says who it is
            beside = None
            if options.pages:
                from massgen_mcp.web.app import api  # no other server needs them
                from massgen_mcp.web.login import login_pages

                encrypted = (settings.public_url or "").startswith("https:")
                answers = await stack.enter_async_context(api(built, redactor, encrypted=encrypted))
                beside = login_pages(answers, settings, encrypted=encrypted)
            await serve_http(built, home, settings, beside, on_leaving=built.stop_waiting)
    else:
        from massgen_mcp.server.stdio import serve_stdio

        await serve_stdio(built.server, options.front)
    service.close()
    return EXIT_OK


# ---------------------------------------------------------------------------------------------------------------------
# How HTTP is served, from the command line and the environment. Tokens come from files and variables only: a command
# line is seen by everybody on the machine.


LEAST_TOKEN = 16
_TOKEN = re.compile(rb"[A-Za-z0-9._~+/=-]+")
_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")


def people_of(options: argparse.Namespace, environ: Mapping[str, str]) -> People | None:
    """Who may come over HTTP; None: nobody is named. Raises `MassgenError` invalid_arguments."""
    given = options.people or environ.get(PEOPLE_VARIABLE, "").strip()
    if not given or options.transport != "http":
        return None
    people = People.of(given, environ)
    if people.variables and environ.get(STORE_VARIABLE):
        message = "`keys` are for a server that executes runs; give people a `pool` whose workers have their keys"
        raise MassgenError("invalid_arguments", message)
    return people


def http_settings(options: argparse.Namespace, environ: Mapping[str, str]) -> HttpSettings:
    """Raises `MassgenError` invalid_arguments."""
    for name in options.allowed_host:
        if not _HOST.fullmatch(name):
            raise MassgenError(
                "invalid_arguments", f"--allowed-host {name}: expected a name, with a port if it has one"
            )
    if options.public_url and not is_safe_url(options.public_url):
        raise MassgenError("invalid_arguments", "--public-url: expected an https:// URL, without a query")
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
        message = f"{source} holds no usable token: at least {LEAST_TOKEN} letters, digits and ._~+/=-, on one line"
        raise MassgenError("invalid_arguments", message)
    return OwnToken(token, source)


def _oauth(options: argparse.Namespace, environ: Mapping[str, str]) -> OAuthSettings:
    if not options.public_url:
        message = "--oauth-issuer needs --public-url: tokens are issued for the URL by which clients know this server"
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
