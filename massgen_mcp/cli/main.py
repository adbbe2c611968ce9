"""`massgen-mcp`: the server, and the verbs that operate runs. One error boundary for all of them."""

import argparse
import os
import sys
from collections.abc import Sequence

from massgen_mcp import __version__
from massgen_mcp.errors import MassgenError

EXIT_USAGE = 1
EXIT_FAILED = 2


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    try:
        code = _demo() if options.verb == "demo" else _serve(options)
    except MassgenError as error:
        print(f"ERROR {error.code}: {error}", file=sys.stderr)  # noqa: T201 - the error boundary
        code = (
            EXIT_FAILED if error.code in ("run_damaged", "disk_full", "store_unavailable", "internal") else EXIT_USAGE
        )
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _serve(options: argparse.Namespace) -> int:
    import anyio  # only what this verb needs

    from massgen_mcp.cli.serve import serve

    anyio.run(serve, options.transport, options.host, options.port)
    return 0


def _demo() -> int:
    import anyio

    from massgen_mcp.cli.demo import demo

    return anyio.run(demo, dict(os.environ))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="massgen-mcp",
        description="Serve MCP tools that delegate a hard question to a team of LLM agents.",
        epilog="Without a verb it serves, over standard input and output unless told otherwise.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--transport", choices=["stdio", "http"], default="stdio")
    parser.add_argument("--host", default="127.0.0.1", help="address for --transport http; loopback only")
    parser.add_argument("--port", type=int, default=0, help="port for --transport http; 0 takes a free one")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    verbs.add_parser("demo", help="see a whole run with scripted agents; needs no key")
    return parser


if __name__ == "__main__":
    main()
