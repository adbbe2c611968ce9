"""How a run stands or ended, in the few words at the head of its page."""

from collections.abc import Iterator

from massgen_mcp.events.run import RunFailed, RunTimedOut
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.spent import clock, cost_of, count
from massgen_mcp.views.votes_text import votes_won


def headline(run: RunState) -> str:
    outcome = run.outcome if run.state == "completed" else None
    return (outcome or run.state).replace("_", " ")


def facts(run: RunState) -> Iterator[str]:
    """Who won, how many took part, how long it took, and what it cost."""
    votes, cast = votes_won(run)
    if run.winner is not None and cast:
        yield f"{run.agents[run.winner.agent].info.id} won {votes} of {cast} votes"
    yield counted(len(run.agents), "agent") + (f", {len(run.dropped)} dropped" if run.dropped else "")
    yield clock(run.elapsed(run.updated_at or 0.0))
    spent = run.spent
    if calls := spent.calls + spent.lost_calls:
        yield counted(calls, "call")
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
        case _:
            return run.input_required.text if run.input_required else None


def counted(number: int, what: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
