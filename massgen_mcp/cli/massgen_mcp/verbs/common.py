"""What the verbs share: the replies of the tools as JSON, and asking for something to be done with a run."""

import argparse
from typing import Literal

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.runs.engine.rows import Action
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.results import ToolReply, controlled
from massgen_mcp.server.results.reply import as_json


def print_json(reply: ToolReply) -> None:
    """One JSON document, the only thing that this command prints: the data that the tool gives."""
    print_line(as_json(reply.structured()))


async def control(
    options: argparse.Namespace, action: Action | Literal["resume"], message: str = "", value: float | None = None
) -> int:
    """Ask for something to be done with the run that is named; returns the exit code."""
    with run_service() as service:
        view = await service.control(await service.find(options.run_id, to_change=True), action, message, value)
        print_controlled(view, action, as_json=options.json)
    return EXIT_OK


def print_controlled(view: RunView, action: Action | Literal["resume"], *, as_json: bool) -> None:
    """The state of a run after a control."""
    if as_json:
        print_json(controlled(view, action))
    else:
        print_line(f"{view.row.run_id}: {view.state}")
