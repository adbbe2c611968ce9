"""What the verbs share: the replies of the tools as JSON."""

from massgen_mcp.cli.output import print_line
from massgen_mcp.server.results import ToolReply
from massgen_mcp.server.results.reply import as_json


def print_json(reply: ToolReply) -> None:
    """One JSON document, the only thing that this command prints: the data that the tool gives."""
    print_line(as_json(reply.structured()))
