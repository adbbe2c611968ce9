"""`control_run`."""

from massgen_mcp.run_state.status import RunStatus
from massgen_mcp.runs.run_view import RunView
from massgen_mcp.server.results.reply import Reply, lines
from massgen_mcp.server.results.words import next_step


class Controlled(Reply):
    run_id: str
    """Of this run."""
    status: RunStatus
    """Where it stands now; what was asked may take a moment to show."""
    next_step: str
    """What to call next."""

    def text(self) -> str:
        return lines(f"{self.run_id}: {self.status}", self.next_step)


def controlled(view: RunView) -> Controlled:
    return Controlled(run_id=view.row.run_id, status=view.state, next_step=next_step(view))
