"""`massgen-mcp` without a verb: the server process, with state directory, run service, tools and transport."""

import argparse
import os
from collections.abc import Callable

import anyio

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.home import find_home
from massgen_mcp.request.team import Team
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.local import local_engine
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
    start_log(home.path)
    service = RunService(local_engine(home), os.environ)

    asking = anyio.Lock()
    silent = dict[tuple[str, str | None], float]()

    async def look_before(team: Team) -> str | None:
        from massgen_mcp.runs.doctor.preflight import MODEL_LISTS, TOOL_SECONDS, require_models  # for who starts a run

        with anyio.move_on_after(LOOK_SECONDS):
            async with asking:  # whoever comes second finds the list that the first one has read
                kept = home.path / MODEL_LISTS
                return await require_models(team.config, team.environ, kept, seconds=TOOL_SECONDS, silent=silent)
        return None

    early = options.front is not None
    built = build_server(home, service, redactor_for(os.environ), look_before=look_before, answered_early=early)
    add(built.server)
    if options.transport == "http":
        from massgen_mcp.cli.massgen_mcp.http_settings import http_settings  # a stdio server needs no web server
        from massgen_mcp.server.http.serving import serve_http

        await serve_http(built.server, home, http_settings(options, os.environ), on_leaving=built.stop_waiting)
    else:
        from massgen_mcp.server.stdio import serve_stdio

        await serve_stdio(built.server, options.front)
    service.close()
    return EXIT_OK
