"""`control_run`."""

from collections.abc import Mapping
from typing import Literal

from massgen_mcp.run_state.status import RunStatus
from massgen_mcp.runs.engine import Action
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.results.reply import ToolReply, lines
from massgen_mcp.server.results.words import next_step


class Controlled(ToolReply):
    run_id: str
    """Of this run."""
    status: RunStatus
    """Where it stands now; what was asked may take a moment to show."""
    next_step: str
    """What to call next."""

    def text(self) -> str:
        return lines(f"{self.run_id}: {self.status}", self.next_step)


def controlled(view: RunView, action: Action | Literal["resume"]) -> Controlled:
    """`action`: what was asked of the run."""
    following = next_step(view) if view.ended else _END_COMES.get(action) or next_step(view)
    return Controlled(run_id=view.row.run_id, status=view.state, next_step=following)


_END_COMES: Mapping[Action | Literal["resume"], str] = {
    "cancel": "It is being stopped; wait_run returns at once with the best answer so far.",
    "finish_now": "It decides with the existing answers; wait_run returns the result.",
}
