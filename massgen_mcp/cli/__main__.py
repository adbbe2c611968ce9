"""`python -m massgen_mcp.cli`: the command `massgen`, for whoever starts it as MassGen's documents do."""

from massgen_mcp.cli.massgen.main import main

if __name__ == "__main__":
    main()
