"""`massgen-mcp`: the server, and the verbs that operate runs."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from massgen_mcp.cli.exits import EXIT_STOPPED, exit_of_error
from massgen_mcp.cli.massgen_mcp.options import parse


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    os.umask(0o077)  # whatever it writes is this user's alone

    def work() -> int:
        import anyio

        # only what this verb needs
        verb = import_module(f"massgen_mcp.cli.massgen_mcp.verbs.{options.verb.replace('-', '_')}")
        return anyio.run(verb.run, options)

    from massgen_mcp.cli.boundary import guarded

    sys.exit(guarded(work, code_of=lambda error: exit_of_error(error.code), interrupted=EXIT_STOPPED))


if __name__ == "__main__":
    main()
