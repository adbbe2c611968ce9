"""`massgen`: one question to one team, executed in this process. Exit codes and automation lines are a contract."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from massgen_mcp import __version__
from massgen_mcp.errors import MassgenError

EXIT_OK = 0
EXIT_CONFIG = 1
EXIT_EXECUTION = 2
EXIT_TIMEOUT = 3
EXIT_INTERRUPTED = 4


class _Parser(argparse.ArgumentParser):
    """A wrong command line is a configuration error, and exits as one."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_CONFIG, f"ERROR invalid_arguments: {message}\n")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    try:
        code = _run(options)
    except MassgenError as error:
        print(f"ERROR {error.code}: {error}", file=sys.stderr)  # noqa: T201 - the error boundary
        code = (
            EXIT_EXECUTION
            if error.code in ("run_damaged", "disk_full", "store_unavailable", "internal")
            else EXIT_CONFIG
        )
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="massgen", description="Ask a team of LLM agents; they answer, read each other and vote.")
    parser.add_argument("question", metavar="QUESTION", help="what the team is to answer")
    parser.add_argument("--config", metavar="PATH|@examples/NAME", help="the team; default: .massgen/config.yaml, ...")
    parser.add_argument("--automation", action="store_true", help="few, stable lines for programs that read them")
    parser.add_argument("--output-file", metavar="FILE", type=Path, help="also write the final answer here")
    parser.add_argument("--version", action="version", version=__version__)
    return parser


def _run(options: argparse.Namespace) -> int:
    import anyio  # `--help` needs none of this

    from massgen_mcp.cli.one_run import run_once

    return anyio.run(run_once, options.question, options.config, options.automation, options.output_file)


if __name__ == "__main__":
    main()
