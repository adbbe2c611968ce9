"""`get_status`: where a run stands, in few tokens. `control_run`: where it stands once something was asked of it.
`wait_run`: the status, and when the run has ended the first page of its result instead.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel

from massgen_mcp.run_state.agents import AgentState, Vote
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import Phase, RunStatus
from massgen_mcp.runs.engine import Action
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.results.reply import Json, ResultPart, ToolReply, json_bytes, lines, listed, name_value, number
from massgen_mcp.server.results.result import Result, first_page
from massgen_mcp.server.results.words import (
    NOT_WOKEN,
    STILL_RUNNING,
    STILL_RUNNING_WOKEN,
    find_own_program,
    next_step,
    note_on,
    reason_of,
    with_model,
)
from massgen_mcp.views.names import name_answer
from massgen_mcp.views.outcome import describe_outcome
from massgen_mcp.views.plain_text import counted

REASON_CHARACTERS = 150
A_WHILE = 10.0
"""Seconds from which on tenths say nothing."""


class Status(ToolReply):
    run_id: str
    """Of this run."""
    status: RunStatus
    """Where it stands."""
    summary: str | None = None
    """Its outcome as a sentence, once it has completed."""
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
    next_step: str
    """What to call next."""

    def body(self) -> str:
        """All but what to do next."""
        head = listed(
            f"{self.run_id}: {self.status}",
            f"{self.phase} round {self.round}",
            f"{number(self.elapsed_seconds)} s",
            f"{self.model_calls} calls",
            f"{self.tokens} tokens",
            name_value("spent_usd", self.spent_usd) or "price unknown",
            name_value("max_usd", self.max_usd),
        )
        cut = "reason truncated" if self.truncated else None
        return lines(head, self.summary, *self.agents, self.nesting, self.reason, cut, self.note)

    def text(self) -> str:
        return lines(self.body(), self.next_step)


def status(view: RunView, going_on: str = NOT_WOKEN) -> Status:
    """`going_on`: what its caller should do while the run works."""
    run = view.snapshot
    reason = reason_of(view, REASON_CHARACTERS)
    cut = view.damage is None and reason != reason_of(view, None)
    longer = " get_result with view=votes gives the full reason." if cut else ""
    return Status(
        run_id=view.row.run_id,
        status=view.state,
        summary=describe_outcome(run) or None,
        phase=run.phase,
        round=max((agent.round for agent in run.agents.values()), default=0),
        elapsed_seconds=round(view.elapsed, 1 if view.elapsed < A_WHILE else None),
        model_calls=run.spent.calls + run.spent.lost_calls,
        tokens=run.spent.tokens,
        spent_usd=run.spent.rounded_usd,
        max_usd=view.max_usd,
        agents=[
            _agent_line(run, agent, run.votes.get(name), queued=run.end is None and name in run.resume_point.queued)
            for name, agent in run.agents.items()
        ],
        nesting=_nesting(view),
        reason=reason,
        truncated=cut or None,
        note=note_on(view),
        next_step=f"{next_step(view, going_on)}{longer}",
    )


def _nesting(view: RunView) -> str | None:
    run, parent = view.snapshot, view.row.parent
    going = len(run.open_nested_runs)
    inside = f"{len(run.nested_runs)} nested runs, {going} of them running" if run.nested_runs else None
    return "; ".join(filter(None, (f"nested in {parent}" if parent else None, inside))) or None


def _agent_line(run: RunState, agent: AgentState, vote: Vote | None, *, queued: bool) -> str:
    """One agent in one short line: what it does or did last, and its answers as long as it has not voted."""
    if vote is not None and agent.dropped is None:
        return f"{with_model(agent.info)}: voted for {name_answer(run, vote.label)}"
    doing, why = "waiting in massgen's queue" if queued else agent.status, ""
    if agent.dropped is not None:
        why = f" ({agent.dropped.reason})"
    elif agent.status in ("error", "timeout"):
        doing = "cut short"
    return f"{with_model(agent.info)}: {doing}{why}, {counted(len(agent.answers), 'answer')}"


class Controlled(ToolReply):
    run_id: str
    """Of this run."""
    status: RunStatus
    """Where it stands now; what was asked may take a moment to show."""
    next_step: str
    """What to call next."""

    def text(self) -> str:
        return lines(f"{self.run_id}: {self.status}", self.next_step)


def controlled(view: RunView, action: Action | Literal["resume"], going_on: str = NOT_WOKEN) -> Controlled:
    """`action`: what was asked of the run; `going_on`: what its caller should do while it works."""
    following = next_step(view) if view.ended else _END_COMES.get(action) or next_step(view, going_on)
    return Controlled(run_id=view.row.run_id, status=view.state, next_step=following)


def kept_budget(view: RunView, value: float, *, over_http: bool) -> Controlled:
    """Return the reply to a call whose user did not agree to raise the budget, or could not be asked."""
    command = f"`{find_own_program()} raise-budget {view.row.run_id} {value:g}`"
    if over_http:
        command += " on the server's machine"
    following = f"The budget is unchanged: only the user can raise it. Ask the user to run {command}."
    return Controlled(run_id=view.row.run_id, status=view.state, next_step=following)


_END_COMES: Mapping[Action | Literal["resume"], str] = {
    "cancel": "The run is being stopped. wait_run returns the best answer so far.",
    "finish_now": "The run is deciding with its existing answers. wait_run returns the result.",
}


class Progress(ResultPart):
    changed: bool
    """Whether anything has happened since `cursor`, or since the call began."""
    cursor: int
    """For the next call: the number of the last event."""


class Waited(ToolReply):
    shown: Status | Result
    progress: Progress

    def structured(self) -> Json:
        shown = self.shown.structured()
        following = shown.pop("next_step")
        return {**shown, **self.progress.model_dump(), "next_step": following}

    def text(self) -> str:
        changed = "changed" if self.progress.changed else "unchanged"
        return lines(self.shown.body(), f"{changed}, cursor {self.progress.cursor}", self.shown.next_step)

    @classmethod
    def schema_sources(cls) -> tuple[type[BaseModel], ...]:
        return (Progress, Status, Result)


def waited(view: RunView, before: int, *, woken: bool = False) -> Waited:
    """`before`: the number of the last event that the caller knew of; `woken`: whether the end of the run wakes it."""
    seq = view.snapshot.seq
    progress = Progress(changed=seq > before or view.ended, cursor=seq)
    if not view.ended or view.damage is not None:
        going_on = STILL_RUNNING_WOKEN if woken else STILL_RUNNING
        return Waited(shown=status(view, going_on), progress=progress)
    return Waited(shown=first_page(view, spare=json_bytes(progress.model_dump())), progress=progress)
