"""`massgen web`: runs in a browser of this machine, to look at, start, steer and apply."""

import argparse
import os

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.output import print_either, print_error
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.home import find_home
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import open_engine
from massgen_mcp.server.build import build_server
from massgen_mcp.server.log import start_log
from massgen_mcp.server.results.reply import as_json
from massgen_mcp.web.serve import open_browser, serve_web


async def run(options: argparse.Namespace) -> int:
    """Serve until a signal. Raises `MassgenError` when it cannot begin."""
    home = find_home(os.environ)
    start_log(home.path)
    service = RunService(open_engine(home, os.environ), os.environ)
    redactor = redactor_for(os.environ)
    built = build_server(home, service, redactor)

    async def ready(address: str) -> None:
        print_either([address], as_json({"url": address}), as_json=options.json)
        if options.open and not await open_browser(home, address):
            print_error("cannot start a browser; open the address above yourself")

    await serve_web(built, redactor, home, options.web_port, ready)
    return EXIT_OK
