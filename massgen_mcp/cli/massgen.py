"""`massgen`: ask a team from the command line. Chooses what is to be done; one error boundary for all of it."""

import sys
import traceback
from collections.abc import Sequence

from massgen_mcp.cli.exits import EXIT_CONFIG, EXIT_EXECUTION, EXIT_INTERRUPTED
from massgen_mcp.cli.options import Options, parse
from massgen_mcp.errors import MassgenError


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    try:
        code = _do(options)
    except MassgenError as error:
        if options.debug:
            traceback.print_exc()
        print(f"ERROR {error.code}: {error}", file=sys.stderr)  # noqa: T201 - the error boundary
        code = EXIT_EXECUTION if error.code in ("store_unavailable", "internal") else EXIT_CONFIG
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    sys.exit(code)


def _do(options: Options) -> int:
    """The one thing that this command line asks for. What it needs is imported only then: `--help` needs none of it."""
    import anyio

    if options.question is None:
        return _converse(options)
    from massgen_mcp.cli.one_run import run_once

    return anyio.run(run_once, options)


def _converse(options: Options) -> int:
    """The interactive mode, for people."""
    if options.automation:
        raise MassgenError("invalid_arguments", "--automation needs a QUESTION")
    raise MassgenError("invalid_arguments", "give a QUESTION, or - to read it from standard input")


if __name__ == "__main__":
    main()
