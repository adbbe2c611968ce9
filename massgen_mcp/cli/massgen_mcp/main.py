"""`massgen-mcp`: the server, and the verbs that operate runs."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from massgen_mcp.cli.exits import EXIT_STOPPED, exit_of_error
from massgen_mcp.cli.interrupt import leave_on_interrupt
from massgen_mcp.cli.streams import open_closed_streams

if TYPE_CHECKING:
    from massgen_mcp.server.front import Front

VERBS = "massgen_mcp.cli.massgen_mcp.verbs"


def main(arguments: Sequence[str] | None = None) -> None:
    leave_on_interrupt(EXIT_STOPPED)  # before anything else is imported
    open_closed_streams()
    from massgen_mcp.cli.massgen_mcp.options import parse

    options = parse(arguments)
    os.umask(0o077)  # whatever it writes is this user's alone
    if options.verb == "serve" and options.transport == "stdio" and sys.stdin.isatty():
        from massgen_mcp.cli.output import print_error

        print_error("Waiting for an MCP client to speak; Ctrl-C ends it. Verbs: `massgen-mcp --help`")
    options.front = _front() if options.verb == "serve" and options.transport == "stdio" else None

    def work() -> int:
        import anyio

        verb = import_module(f"{VERBS}.{options.verb.replace('-', '_')}")  # only what this verb needs
        return anyio.run(verb.run, options)

    from massgen_mcp.cli.boundary import guarded

    sys.exit(guarded(work, code_of=lambda error: exit_of_error(error.code), interrupted=EXIT_STOPPED))


def _front() -> "Front | None":
    """Answers a client's first questions while the server is imported, if a start before this one left the answers."""
    from massgen_mcp.server.front import Front
    from massgen_mcp.server.start_snapshot import read_snapshot

    if (snapshot := read_snapshot(os.environ)) is None:
        return None
    front = Front(snapshot)
    try:
        front.answer_until(lambda: (import_module(f"{VERBS}.serve"), import_module("massgen_mcp.server.stdio")))
    except Exception as error:  # noqa: BLE001 - a client that already talks to us has to hear why it ends
        front.refuse(f"the server cannot be loaded: {type(error).__name__}: {error}")
    return front


if __name__ == "__main__":
    main()
