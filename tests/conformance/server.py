"""Our server with the fixtures of the conformance suite on it: `python -m tests.conformance.server` takes the options
of `massgen-mcp`, and is that program but for the fixtures.
"""

import sys

import anyio

from massgen_mcp.cli.commands import load_verb
from massgen_mcp.cli.massgen_mcp.verbs import serve
from massgen_mcp.server.app import MassgenServer
from tests.conformance.fixtures import add_fixtures
from tests.conformance.task_fixtures import add_task_fixtures


def add(server: MassgenServer) -> None:
    add_fixtures(server)
    add_task_fixtures(server)


async def main() -> None:
    options = load_verb("serve").parse(sys.argv[1:])
    await serve.run(options, add)


if __name__ == "__main__":
    anyio.run(main)
