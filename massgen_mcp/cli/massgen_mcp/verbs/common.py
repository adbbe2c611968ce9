"""What the verbs share: the replies of the tools as JSON."""

from massgen_mcp.cli.output import print_line
from massgen_mcp.runs.run_view import RunView
from massgen_mcp.server.results import Reply, controlled
from massgen_mcp.server.results.reply import as_json


def print_json(reply: Reply) -> None:
    """One JSON document, the only thing that this command prints: the data that the tool gives."""
    print_line(as_json(reply.structured()))


def print_controlled(view: RunView, *, as_json: bool) -> None:
    """The state of a run after a control."""
    if as_json:
        print_json(controlled(view))
    else:
        print_line(f"{view.row.run_id}: {view.state}")
