"""What the verbs share: output as JSON."""

from typing import TYPE_CHECKING

from massgen_mcp.cli.output import print_line
from massgen_mcp.runs.run_view import RunView
from massgen_mcp.server.results import controlled

if TYPE_CHECKING:
    from pydantic import BaseModel


def print_json(document: "BaseModel") -> None:
    """One JSON document, the only thing that this command prints."""
    print_line(document.model_dump_json())


def print_controlled(view: RunView, *, as_json: bool) -> None:
    """The state of a run after a control."""
    if as_json:
        print_json(controlled(view))
    else:
        print_line(f"{view.row.run_id}: {view.state}")
