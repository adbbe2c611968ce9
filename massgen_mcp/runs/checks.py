"""What a caller may ask of a run that was started, held against its limits. Stores and asks nothing."""

from massgen_mcp.config.models.orchestrator import MAX_USD
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.question import check_text
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine import Action, RunRow
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.statistics.sums import CountedRun

TOO_LATE = "the winner is writing the final answer, and the agents no longer read messages"
MAX_MESSAGE_CHARACTERS = 20_000
MAX_NOTE_CHARACTERS = 2_000


def check_action(view: RunView, action: Action, message: str) -> None:
    if action in ("steer", "answer"):
        if not message.strip():
            raise MassgenError("invalid_arguments", f"{action} needs a `message`")
        if len(message) > MAX_MESSAGE_CHARACTERS:
            raise MassgenError("invalid_arguments", f"`message` has more than {MAX_MESSAGE_CHARACTERS} characters")
        check_text("message", message)
        if view.ended:
            raise MassgenError(
                "invalid_action", f"run {view.row.run_id} is {view.state}; it no longer accepts messages"
            )
    if action == "steer" and not view.snapshot.hears:
        raise MassgenError("invalid_action", f"run {view.row.run_id}: {TOO_LATE}")
    if action == "answer" and view.snapshot.input_required is None:
        raise MassgenError(
            "invalid_action", f"run {view.row.run_id} is {view.state} and has no open question; use steer"
        )
    asked = view.snapshot.input_required
    if action == "answer" and asked is not None and asked.kind == "budget_reached":
        raise MassgenError("invalid_action", "the run has reached its budget: use raise_budget, finish_now or cancel")


def check_mark(row: RunRow, run: CountedRun | None, agent: str | None, note: str) -> None:
    """`run`: what statistics know of the run, if it has ended."""
    if run is None:
        state = "has no readable record" if row.state in TERMINAL_STATES else f"is {row.state}; wait until it ends"
        raise MassgenError("not_finished", f"run {row.run_id} {state}")
    agents = [one.id for one in run.digest.agents]
    if agent is not None and agent not in agents:
        raise MassgenError(
            "invalid_arguments", f"run {row.run_id} has no agent {agent[:80]!r}; it has {', '.join(agents)}"
        )
    if len(note) > MAX_NOTE_CHARACTERS:
        raise MassgenError("invalid_arguments", f"the note has more than {MAX_NOTE_CHARACTERS} characters")
    check_text("note", note)


def checked_raise(view: RunView, value: float | None) -> str:
    """The new cap as it is stored. Raises `MassgenError` where it would raise nothing."""
    if view.ended:
        raise MassgenError(
            "invalid_action", f"run {view.row.run_id} is {view.state}, so its budget can no longer be raised"
        )
    if outer := view.row.parent:
        message = f"run {view.row.run_id} uses part of the budget of run {outer}; raise that run's budget instead"
        raise MassgenError("invalid_action", message)
    cap = view.max_usd or 0.0
    if value is None or not cap < value <= MAX_USD:
        message = f"raise_budget needs a `value` above the current {cap:g} US dollars and at most {MAX_USD:g}"
        raise MassgenError("invalid_arguments", message)
    return repr(value)
