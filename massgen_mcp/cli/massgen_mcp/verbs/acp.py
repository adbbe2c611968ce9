"""`massgen acp`: the team as an agent of an editor, over the Agent Client Protocol on standard input and output."""

import argparse
import os

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.editors.serve import serve_editor
from massgen_mcp.home import find_home
from massgen_mcp.server.log import start_log


async def run(options: argparse.Namespace) -> int:  # noqa: ARG001 - every verb takes its options
    """Serve until the editor is gone. Raises `MassgenError` when it cannot begin."""
    start_log(find_home(os.environ).path)
    with run_service() as service:
        await serve_editor(service, os.environ)
    return EXIT_OK
