"""`get_status`: where a run stands, in few tokens."""

from massgen_mcp.run_state.agents import AgentState, Vote
from massgen_mcp.run_state.status import Phase, RunStatus
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.results.reply import ToolReply, lines, listed, number
from massgen_mcp.server.results.words import next_step, note_on, reason_of, with_model

POLL_MS = 3_000
MAX_POLL_MS = 15_000
REASON_CHARACTERS = 150
A_WHILE = 10.0
"""Seconds from which on tenths say nothing."""


class Status(ToolReply):
    run_id: str
    """Of this run."""
    status: RunStatus
    """Where it stands."""
    phase: Phase
    """What the team is doing."""
    round: int
    """The highest number of an agent's round in this attempt."""
    elapsed_seconds: float
    """For how long it is, or was, worked on."""
    model_calls: int
    """Calls of models so far."""
    tokens: int
    """Input and output of all calls."""
    spent_usd: float | None = None
    """Absent where no price is known."""
    max_usd: float | None = None
    """The cap of its cost."""
    agents: list[str]
    """One line per agent: its id with its model, what it does or for what it voted, its answers."""
    nesting: str | None = None
    """How many runs were started inside it; or of a nested run, in which one."""
    reason: str | None = None
    """Why it ended otherwise than completed, or does not go on."""
    truncated: bool | None = None
    """True where `reason` is cut."""
    note: str | None = None
    """What else is worth knowing."""
    poll_after_ms: int | None = None
    """Absent when there is nothing to wait for."""
    next_step: str
    """What to call next."""

    def body(self) -> str:
        """All but what to do next."""
        spent = "price unknown" if self.spent_usd is None else f"spent_usd {number(self.spent_usd)}"
        head = listed(
            f"{self.run_id}: {self.status}",
            f"{self.phase} round {self.round}",
            f"{number(self.elapsed_seconds)} s",
            f"{self.model_calls} calls",
            f"{self.tokens} tokens",
            spent,
            f"max_usd {number(self.max_usd)}" if self.max_usd is not None else None,
            f"poll_after_ms {self.poll_after_ms}" if self.poll_after_ms is not None else None,
        )
        cut = "reason truncated" if self.truncated else None
        return lines(head, *self.agents, self.nesting, self.reason, cut, self.note)

    def text(self) -> str:
        return lines(self.body(), self.next_step)


def status(view: RunView) -> Status:
    run = view.snapshot
    reason = reason_of(view, REASON_CHARACTERS)
    cut = view.damage is None and reason != reason_of(view, None)
    longer = " get_result with view=votes has the whole reason." if cut else ""
    return Status(
        run_id=view.row.run_id,
        status=view.state,
        phase=run.phase,
        round=max((agent.round for agent in run.agents.values()), default=0),
        elapsed_seconds=round(view.elapsed, 1 if view.elapsed < A_WHILE else None),
        model_calls=run.spent.calls + run.spent.lost_calls,
        tokens=run.spent.tokens,
        spent_usd=run.spent.rounded_usd,
        max_usd=view.max_usd,
        agents=[
            _line(agent, run.votes.get(name), queued=run.end is None and name in run.resume_point.queued)
            for name, agent in run.agents.items()
        ],
        nesting=_nesting(view),
        reason=reason,
        truncated=cut or None,
        note=note_on(view),
        poll_after_ms=poll_after(view),
        next_step=f"{next_step(view)}{longer}",
    )


def _nesting(view: RunView) -> str | None:
    run, parent = view.snapshot, view.row.parent
    going = len(run.open_nested_runs)
    inside = f"{len(run.nested_runs)} nested runs, {going} of them running" if run.nested_runs else None
    return "; ".join(filter(None, (f"nested in {parent}" if parent else None, inside))) or None


def _line(agent: AgentState, vote: Vote | None, *, queued: bool) -> str:
    """One agent in one short line: what it does or did last, and its answers as long as it has not voted."""
    if vote is not None and agent.dropped is None:
        return f"{with_model(agent.info)}: voted for {vote.label}"
    doing, why = "waits in our own queue" if queued else agent.status, ""
    if agent.dropped is not None:
        why = f" ({agent.dropped.reason})"
    elif agent.status in ("error", "timeout"):
        doing = "cut short"
    count = len(agent.answers)
    return f"{with_model(agent.info)}: {doing}{why}, {count} answer{'' if count == 1 else 's'}"


def poll_after(view: RunView) -> int | None:
    """In milliseconds. Longer pauses for longer runs; None when there is nothing to wait for."""
    return None if view.stands_still else round(min(MAX_POLL_MS, max(POLL_MS, view.elapsed * 100)))
