"""Our server over HTTP with the fixtures of the conformance suite on it: `python -m tests.conformance.server`.

It is built, guarded and served as `massgen-mcp --transport http` is; only the fixtures are more.
"""

import os

import anyio

from massgen_mcp.config.held_keys import redactor_for
from massgen_mcp.home import find_home
from massgen_mcp.runs.local import local_engine
from massgen_mcp.runs.service import RunService
from massgen_mcp.server.build import build_server
from massgen_mcp.server.http import serve_http
from massgen_mcp.server.log import start_log
from tests.conformance.fixtures import add_fixtures
from tests.conformance.task_fixtures import add_task_fixtures


async def serve() -> None:
    home = find_home(os.environ)
    start_log(home.path)
    service = RunService(local_engine(home), os.environ)
    built = build_server(home, service, redactor_for(os.environ))
    add_fixtures(built.server)
    add_task_fixtures(built.server)
    await serve_http(built.server, home, host="127.0.0.1", port=0, on_leaving=built.stop_waiting)


if __name__ == "__main__":
    anyio.run(serve)
