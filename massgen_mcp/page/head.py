"""How a run stands or ended, in the few words at the head of its page."""

from collections.abc import Iterator

from massgen_mcp.events.run import RunFailed, RunTimedOut
from massgen_mcp.page.data import CallerAction, PageTone
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import TERMINAL_STATES, RunStatus
from massgen_mcp.views.checks import standing_in_tests
from massgen_mcp.views.outcome import describe_outcome
from massgen_mcp.views.plain_text import counted
from massgen_mcp.views.spent import clock, cost_of, count
from massgen_mcp.views.votes_text import votes_won


def headline(run: RunState, *, reasons: bool) -> str:
    """Return how the run stands, or its outcome as a sentence; without `reasons` nothing that an agent wrote."""
    if run.moved:
        return "moved"
    return describe_outcome(run, reasons=reasons) or run.state.replace("_", " ")


def tone(run: RunState) -> PageTone:
    """A weak win is none to be green about."""
    return "busy" if run.state == "completed" and run.work_done.weak else TONES[run.state]


TONES: dict[RunStatus, PageTone] = {
    "queued": "busy",
    "running": "busy",
    "input_required": "busy",
    "completed": "good",
    "failed": "bad",
    "cancelled": "busy",
    "timed_out": "bad",
    "interrupted": "busy",
}


def actions(run: RunState) -> Iterator[CallerAction]:
    """What `runs/checks.py` and `runs/patches/applying.py` would not refuse, and what would not be in vain."""
    if run.state in TERMINAL_STATES:
        made = (run.best_changes, *(one.latest_changes for one in run.agents.values()))
        writable = run.base is not None and any(one.writable for one in run.base.directories)
        if writable and any(one is not None and one.count for one in made):
            yield "apply"
        return
    if run.moved:
        return
    if run.state == "interrupted":
        yield from ("resume", "cancel")
        return
    asked = run.input_required
    if asked is None and run.hears:
        yield "steer"
    elif asked is not None and asked.kind != "budget_reached":
        yield "answer"
    if run.max_usd is not None and not run.parent:
        yield "raise_budget"
    if run.winner is None and not run.coordination.finish_requested and not run.budget_reached:
        yield "finish_now"
    yield "cancel"


def facts(run: RunState) -> Iterator[str]:
    """Who won, how many took part, how long it took, and what it cost."""
    if run.winner is not None and (won := votes_won(run)):
        yield f"{run.agents[run.winner.agent].info.id} won {won}"
    if standing := standing_in_tests(run):
        yield standing
    if run.winner is not None and run.winner.asked is not None:
        yield f"asked {run.winner.asked} of {run.winner.of}"
    dropped = len(run.work_done.dropped)
    yield counted(len(run.agents), "agent") + (f", {dropped} dropped" if dropped else "")
    if run.state in TERMINAL_STATES:
        seconds = run.elapsed(run.updated_at or 0.0)
        yield f"took {clock(seconds)}" if seconds >= 60 else f"took {seconds:.1f} s"
    spent = run.spent
    if calls := spent.calls + spent.lost_calls:
        yield counted(calls, "model call")
        yield f"{count(spent.input_tokens)} tokens in, {count(spent.output_tokens)} out"
        yield cost_of(spent)
    if run.resumed:
        yield f"continued {counted(run.resumed, 'time')}"
    if run.parent:
        yield f"nested in {run.parent}"


def why_it_ended(run: RunState) -> str | None:
    """Why it ended otherwise than completed, or what it asks before it goes on; None where there is nothing to tell."""
    match run.end:
        case RunFailed() | RunTimedOut() as end:
            return end.message
        case None:
            return run.input_required.text if run.input_required else None
        case _:
            return None
