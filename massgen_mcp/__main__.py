"""`python -m massgen_mcp`: the command `massgen-mcp`. The command `massgen` is `python -m massgen_mcp.cli`."""

from massgen_mcp.cli.massgen_mcp.main import main

if __name__ == "__main__":
    main()
