"""`massgen-mcp`: the server, and every verb of `massgen`."""

from collections.abc import Sequence

from massgen_mcp.cli import program


def main(arguments: Sequence[str] | None = None) -> None:
    program.main("massgen-mcp", arguments)


if __name__ == "__main__":
    main()
