"""A server process without what answers before it is there."""

import anyio

from massgen_mcp.cli.commands import load_verb
from massgen_mcp.cli.massgen_mcp.verbs import serve

if __name__ == "__main__":
    options = load_verb("serve").parse([])
    anyio.run(serve.run, options)
