"""`massgen-mcp` without a verb: the server process, with state directory, run service, tools and transport."""

import argparse
import os
from collections.abc import Callable

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.config.held_keys import redactor_for
from massgen_mcp.home import find_home
from massgen_mcp.runs.local import local_engine
from massgen_mcp.runs.service import RunService
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.server.build import build_server
from massgen_mcp.server.log import start_log
from massgen_mcp.server.start_snapshot import keep_snapshot


async def run(options: argparse.Namespace, add: Callable[[MassgenServer], None] = lambda _: None) -> int:
    """Serve until the client or a signal ends it. Raises `MassgenError` when it cannot begin.

    `add` puts more on the server than ours: only the conformance suite of the protocol needs that.
    """
    home = find_home(os.environ)
    start_log(home.path)
    service = RunService(local_engine(home), os.environ)
    built = build_server(home, service, redactor_for(os.environ), answered_early=options.front is not None)
    add(built.server)
    if options.transport == "http":
        from massgen_mcp.cli.massgen_mcp.http_settings import http_settings  # a stdio server needs no web server
        from massgen_mcp.server.http import serve_http

        await serve_http(built.server, home, http_settings(options, os.environ), on_leaving=built.stop_waiting)
    else:
        from massgen_mcp.server.stdio import serve_stdio

        await serve_stdio(built.server, options.front)
    service.close()
    return EXIT_OK


async def prepare() -> None:
    """Keep what a client asks first, so that the server is there in time at its very first start, too. Raises
    `MassgenError` where there can be no state directory.
    """
    home = find_home(os.environ)
    service = RunService(local_engine(home), os.environ)
    await keep_snapshot(build_server(home, service, redactor_for(os.environ)).server)
    service.close()
