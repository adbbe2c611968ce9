"""`massgen`: ask a team from the command line, and every verb."""

from collections.abc import Sequence

from massgen_mcp.cli import program


def main(arguments: Sequence[str] | None = None) -> None:
    program.main("massgen", arguments)


if __name__ == "__main__":
    main()
