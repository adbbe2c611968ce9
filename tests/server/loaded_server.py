"""A server process without what answers before it is there."""

import anyio

from massgen_mcp.cli.massgen_mcp.options import parse
from massgen_mcp.cli.massgen_mcp.verbs import serve

if __name__ == "__main__":
    options = parse([])
    options.front = None
    anyio.run(serve.run, options)
