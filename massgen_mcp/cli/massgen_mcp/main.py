"""`massgen-mcp`: the server, and the verbs that operate runs."""

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from massgen_mcp.cli.exits import EXIT_BROKEN, EXIT_STOPPED, exit_of_error
from massgen_mcp.cli.process import leave_on_interrupt, loaded, open_closed_streams

if TYPE_CHECKING:
    from massgen_mcp.server.front import Front

VERBS = "massgen_mcp.cli.massgen_mcp.verbs"
MODULES = {
    **dict.fromkeys(("answer", "cancel", "mark", "raise-budget", "resume"), "controls"),
    **dict.fromkeys(("start", "store", "worker"), "several_machines"),
    **dict.fromkeys(("report", "stats"), "pages"),
    **dict.fromkeys(("runs", "wait"), "status"),
    "check-adapter": "doctor",
    **dict.fromkeys(("export", "import"), "moving"),
    "uninstall": "install",
}
"""Of verbs that share one; each other verb has a module of its name."""


def main(arguments: Sequence[str] | None = None) -> None:
    leave_on_interrupt(EXIT_STOPPED)  # before anything else is imported
    open_closed_streams()
    from massgen_mcp.cli.massgen_mcp.options import parse
    from massgen_mcp.cli.output import print_error
    from massgen_mcp.errors import MassgenError
    from massgen_mcp.home import STORE_VARIABLE

    options = parse(arguments)
    if "store" in options:
        os.environ[STORE_VARIABLE] = options.store
    os.umask(0o077)  # whatever it writes is this user's alone
    if options.verb == "serve" and options.transport == "stdio" and sys.stdin.isatty():
        print_error("Waiting for an MCP client to speak; Ctrl-C ends it. Verbs: `massgen-mcp --help`")
    gc.disable()  # until all is loaded
    options.front = _front() if options.verb == "serve" and options.transport == "stdio" else None

    def work() -> int:
        import anyio

        verb = import_module(f"{VERBS}.{MODULES.get(options.verb, options.verb)}")  # only what this verb needs
        loaded()
        try:
            return anyio.run(verb.run, options)
        except MassgenError as error:
            if options.front is not None:  # a client that already talks to us has to hear why nothing works
                if not options.front.exit_code:
                    print_error(f"ERROR {error.code}: {error}")
                options.front.refuse(error.code, str(error), exit_of_error(error.code))
            raise

    from massgen_mcp.cli.boundary import guarded

    sys.exit(guarded(work, code_of=lambda error: exit_of_error(error.code), interrupted=EXIT_STOPPED))


def _front() -> "Front":
    """Answers a client's first questions while the server is imported. Settings that cannot be used are told first."""
    from massgen_mcp.cli.output import print_error
    from massgen_mcp.errors import MassgenError
    from massgen_mcp.home import find_home
    from massgen_mcp.server.front import Front, first_answers

    code = 0
    try:
        find_home(os.environ)
    except MassgenError as error:
        print_error(f"ERROR {error.code}: {error}")
        code = exit_of_error(error.code)
    front = Front(first_answers(), exit_code=code)
    try:
        front.answer_until(_load)
    except Exception as error:  # noqa: BLE001 - a client that already talks to us has to hear why it ends
        front.refuse("internal", f"the server cannot be loaded: {type(error).__name__}: {error}", EXIT_BROKEN)
    return front


def _load() -> None:
    import_module(f"{VERBS}.serve")
    import_module("massgen_mcp.server.stdio")


if __name__ == "__main__":
    main()
