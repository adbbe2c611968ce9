"""`massgen-mcp` without a verb: the server process, with state directory, run service, tools and transport."""

import argparse
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace

import anyio

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import PEOPLE_VARIABLE, STORE_VARIABLE, find_home
from massgen_mcp.people import ANONYMOUS, People, current_user, set_current_user
from massgen_mcp.request.team import Team
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import open_engine
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.server.build import build_server
from massgen_mcp.server.log import start_log

LOOK_SECONDS = 1.0
"""So long `start_run` looks at most whether there are such models, imports and other callers included."""


async def run(options: argparse.Namespace, add: Callable[[MassgenServer], None] = lambda _: None) -> int:
    """Serve until the client or a signal ends it. Raises `MassgenError` when it cannot begin.

    `add` puts more on the server than ours: only the conformance suite of the protocol needs that.
    """
    home = find_home(os.environ)
    start_log(home.path, as_json=options.log_format == "json")
    service = RunService(open_engine(home, os.environ), os.environ, current_user)

    asking = anyio.Lock()
    silent = dict[tuple[str, str | None], float]()

    async def look_before(team: Team) -> str | None:
        if service.access.engine.pool is not None:
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
        from massgen_mcp.cli.massgen_mcp.http_options import http_settings
        from massgen_mcp.server.http.serving import serve_http

        settings = replace(http_settings(options, os.environ), people=people, as_json=options.log_format == "json")
        async with AsyncExitStack() as stack:
            stack.enter_context(set_current_user(ANONYMOUS if people else None))  # until a token says who it is
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


def people_of(options: argparse.Namespace, environ: Mapping[str, str]) -> People | None:
    """Who may come over HTTP; None: nobody is named. Raises `MassgenError` invalid_arguments."""
    given = options.people or environ.get(PEOPLE_VARIABLE, "").strip()
    if not given or options.transport != "http":
        return None
    people = People.of(given, environ)
    if people.variables and environ.get(STORE_VARIABLE):
        message = "`keys` work only on a server that executes runs; give users a `pool` whose workers have the keys"
        raise MassgenError("invalid_arguments", message)
    return people
