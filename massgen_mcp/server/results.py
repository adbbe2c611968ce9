"""Draws what the tools return from a run, a config or the store.

Everything a model needs is in there, the next step included: some clients show it nothing else.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from massgen_mcp.config.examples import example_path, list_examples
from massgen_mcp.config.loader import load_config, missing_keys
from massgen_mcp.config.models import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.events import RunFailed, RunTimedOut
from massgen_mcp.money.estimate import Estimate
from massgen_mcp.request.reach import Reach
from massgen_mcp.run_state.agents import AgentState, Vote
from massgen_mcp.runs.run_view import RunView
from massgen_mcp.server.app import WHERE_KEYS_GO
from massgen_mcp.server.reply_models import (
    ConfigLine,
    ConfigList,
    Controlled,
    Dissent,
    Dropped,
    Member,
    Result,
    RunLine,
    RunList,
    Started,
    Status,
    Usage,
    VoteLine,
    Waited,
)
from massgen_mcp.views.plain_text import preview
from massgen_mcp.views.sentences import decided_beyond_votes
from massgen_mcp.views.spent import money_notes

POLL_MS = 3_000
MAX_POLL_MS = 15_000
REASON_CHARACTERS = 500
STATUS_REASON_CHARACTERS = 150
DISSENT_CHARACTERS = 1_000
ANSWER_CHARACTERS = 10_000
"""Of an answer that `start_run` gives at once."""
NO_REAL_ANSWER = "Not a real answer: the agents are scripted, and no model was asked."


def planned(config: Config, source: str, reach: Reach, expected: Estimate, environ: Mapping[str, str]) -> Started:
    missing = missing_keys(config, environ)
    next_step = f"Set {', '.join(missing)}: {WHERE_KEYS_GO}" if missing else "Call start_run without dry_run."
    return Started(
        run_id=None,
        status="planned",
        team=_team(config),
        source=source,
        reach=str(reach),
        missing_keys=missing,
        estimate=str(expected),
        poll_after_ms=None,
        next_step=next_step,
    )


def started(
    view: RunView, config: Config, source: str, reach: Reach, expected: Estimate, *, reused: bool, note: str
) -> Started:
    """`note`: what the caller should know about the run's session."""
    answer, next_offset = _page(view.snapshot.final_answer, 0, ANSWER_CHARACTERS)
    return Started(
        run_id=view.row.run_id,
        status=view.state,
        reused=reused,
        team=_team(config),
        source=source,
        reach=str(reach),
        estimate=str(expected),
        answer=answer,
        truncated=next_offset is not None,
        poll_after_ms=_poll(view),
        next_step=note + (_with_answer(view, next_offset) if answer else _next_step(view)),
    )


def status(view: RunView) -> Status:
    return Status.model_validate(_status(view))


def controlled(view: RunView) -> Controlled:
    return Controlled(run_id=view.row.run_id, status=view.state, next_step=_next_step(view))


def waited(view: RunView, before: int) -> Waited:
    seq = view.snapshot.seq
    return Waited.model_validate({**_status(view), "changed": seq > before or view.ended, "cursor": seq})


def result(
    view: RunView, what: Literal["summary", "full", "votes", "agent"], agent: str | None, offset: int, limit: int
) -> Result:
    """Raises `MassgenError` not_finished while there is nothing to show, invalid_arguments for an agent that is
    unknown or named with another view, run_damaged where the record is damaged; one agent's answer is shown if it came
    before the damage.
    """
    run = view.snapshot
    if agent is not None and what != "agent":
        raise MassgenError("invalid_arguments", "`agent` needs view=agent")
    if view.damage is not None and what != "agent":
        raise MassgenError("run_damaged", f"{view.damage}; {_salvage(view)}")
    text = run.best_answer
    match what:
        case "agent":
            text = _answer_of(view, agent)
        case "votes":
            text = None
        case "summary" | "full":
            if what == "full" and text is not None:
                text = _everything(view, text)
            if not view.ended:
                raise MassgenError(
                    "not_finished", f"run {view.row.run_id} is {view.state} ({run.phase}); {_next_step(view)}"
                )
    page, next_offset = _page(text, offset, limit)
    usage = run.spent
    return Result(
        run_id=view.row.run_id,
        status=view.state,
        answer=page,
        truncated=next_offset is not None or offset > 0,
        next_offset=next_offset,
        outcome=run.outcome or (run.winner.outcome if run.winner else None),
        reason=_reason(view),
        winner=run.winner.agent if run.winner else None,
        vote_counts=run.winner.votes if run.winner else run.tally,
        votes=_votes(view),
        dissent=_dissent(view),
        degraded=[Dropped(agent=a, reason=r, message=preview(m, 300)) for a, r, m in run.degraded],
        usage=Usage(
            model_calls=usage.calls,
            input_tokens=usage.input_tokens,
            cached_input_tokens=usage.cached_input_tokens,
            output_tokens=usage.output_tokens,
            calls_without_usage=usage.calls_without_usage,
            cost_usd=usage.rounded_usd,
            unpriced_calls=usage.unpriced_calls,
        ),
        note=_note(view),
        resumed=run.resumed,
        seconds=round(view.elapsed, 3),
        paths=_paths(view, agent),
        next_step=_after(next_offset) if view.state == "completed" else _rest(next_offset) or _next_step(view),
    )


def run_list(views: Sequence[RunView], limit: int) -> RunList:
    rows = [
        RunLine(
            run_id=view.row.run_id,
            status=view.state,
            question=preview(view.row.question, 100),
            source=view.row.config,
            started=math.floor(view.row.created * 1000) / 1000,  # so that `since` of it includes it
            winner=view.row.winner or (view.snapshot.winner.agent if view.snapshot.winner else None),
            expired=view.row.expired,
        )
        for view in views
    ]
    return RunList(runs=rows, next_cursor=views[-1].row.number if len(views) == limit else None)


def config_list(name: str | None, environ: Mapping[str, str]) -> ConfigList:
    """All packaged configs; with `name` only that one, whole. Raises `MassgenError` config_not_found."""
    examples = list_examples()
    text = None
    if name is not None:
        path = example_path(name)
        text = path.read_text(encoding="utf-8")
        examples = [example for example in examples if example.path == path]
    lines: list[ConfigLine] = []
    for example in examples:
        config = load_config(example.path, environ=environ)
        lines.append(
            ConfigLine(
                name=example.name,
                description=example.description,
                agents=_team(config),
                missing_keys=missing_keys(config, environ),
            )
        )
    return ConfigList(configs=lines, yaml=text, next_step="Call start_run with config=<name>.")


# -- parts ----------------------------------------------------------------------------------------------------------


def _team(config: Config) -> list[Member]:
    return [Member(agent=agent.id, model=f"{agent.backend.type}/{agent.backend.model}") for agent in config.agents]


def _status(view: RunView) -> dict[str, object]:
    run = view.snapshot
    return {
        "run_id": view.row.run_id,
        "status": view.state,
        "phase": run.phase,
        "progress_percent": run.progress,
        "elapsed_seconds": round(view.elapsed, 1),
        "model_calls": run.spent.calls,
        "tokens": run.spent.tokens,
        "spent_usd": run.spent.rounded_usd,
        "max_usd": view.max_usd,
        "note": _note(view),
        "agents": [
            _line(agent, run.votes.get(name), queued=name in run.resume_point.queued)
            for name, agent in run.agents.items()
        ],
        "reason": _reason(view, STATUS_REASON_CHARACTERS),
        "poll_after_ms": _poll(view),
        "next_step": _next_step(view),
    }


def _line(agent: AgentState, vote: Vote | None, *, queued: bool) -> str:
    """One agent in one short line, so that a status of ten stays under a kilobyte."""
    count = len(agent.answers)
    answers = f"{count} answer{'' if count == 1 else 's'}"
    choice = f", for {vote.label}" if vote else ""
    status = "waits in our own queue" if queued else agent.status
    return f"{agent.info.name} ({agent.info.model[:24]}): {status}, {answers}{choice}"


def _poll(view: RunView) -> int | None:
    """Longer pauses for longer runs; None when there is nothing to wait for."""
    return None if view.stands_still else round(min(MAX_POLL_MS, max(POLL_MS, view.elapsed * 100)))


def _next_step(view: RunView) -> str:
    if view.damage is not None and view.ended:
        return _salvage(view)
    match view.state:
        case "queued" if view.ahead:
            runs = f"{view.ahead} runs have" if view.ahead > 1 else "One run has"
            return f"{runs} to start before it. Continue with other work, then call wait_run."
        case "queued" | "running":
            return "Continue with other work, then call wait_run; do not poll in a loop."
        case "completed":
            return "Call get_result for the answer." if view.snapshot.final_answer else "Nothing more to do."
        case "failed":
            best = "get_result has the best answer so far. " if view.snapshot.best_answer else ""
            return f"{best}Fix the cause given in `reason`, then start a new run."
        case "cancelled" | "timed_out":
            return "get_result has the best answer so far." if view.snapshot.best_answer else "Start a new run."
        case "input_required":
            return _decide(view)
        case "interrupted":
            if view.held_up_by is None:
                return "Its runner was lost and another one continues it; call wait_run."
            wanted = "Its keys are missing: set them" if view.newer is None else "Upgrade massgen-mcp"
            return f"{wanted} where the server starts, then call control_run with action=resume."


def _with_answer(view: RunView, next_offset: int | None) -> str:
    note = _note(view)
    return f"{note} {_after(next_offset)}" if note else _after(next_offset)


def _after(next_offset: int | None) -> str:
    """What to do with an answer that is given with this."""
    return _rest(next_offset) or "The answer is whole; get_result with view=full or view=votes has what led to it."


def _rest(next_offset: int | None) -> str:
    return f"Call get_result with offset={next_offset} for the rest." if next_offset else ""


def _decide(view: RunView) -> str:
    asked = view.snapshot.input_required
    if asked is not None and asked.kind == "budget_reached":
        return "Decide: call control_run with action=raise_budget and value, action=finish_now or action=cancel."
    return "Decide: call control_run with action=answer and message."


def _salvage(view: RunView) -> str:
    """What can still be read of a run whose record is damaged."""
    agents = ", ".join(name for name, agent in view.snapshot.agents.items() if agent.answers)
    whole = f"get_result with view=agent has earlier answers of {agents}; " if agents else ""
    return f"{whole}undamaged files are in {view.directory.path}. Start a new run for the rest."


def _note(view: RunView) -> str | None:
    agents = view.snapshot.agents.values()
    scripted = [NO_REAL_ANSWER] if agents and all(agent.info.backend == "scripted" for agent in agents) else []
    winner = view.snapshot.winner
    beyond = [f"How it was decided: {'; '.join(parts)}."] if winner and (parts := decided_beyond_votes(winner)) else []
    newer = ["A newer massgen-mcp wrote parts of this run; this version cannot show them."] if view.newer else []
    return " ".join([*scripted, *beyond, *money_notes(view.snapshot), *newer]) or None


def _reason(view: RunView, limit: int = REASON_CHARACTERS) -> str | None:
    if view.damage is not None:
        return f"{view.damage.code}: {preview(str(view.damage), limit)}"
    match view.snapshot.end:
        case RunFailed() as end:
            return f"{end.reason}: {preview(end.message, limit)}"
        case RunTimedOut() as end:
            return preview(end.message, limit)
        case _:
            if asked := view.snapshot.input_required:
                return f"{asked.kind}: {preview(asked.text, limit)}"
            if view.state != "interrupted":
                return None
            if view.newer is not None:
                return f"{view.newer.code}: {preview(str(view.newer), limit)}"
            return f"runner_lost: {view.held_up_by}" if view.held_up_by else "runner_lost"


def _votes(view: RunView) -> list[VoteLine]:
    run = view.snapshot
    authors = {answer.label: answer.agent for answer in run.current_answers}
    return [
        VoteLine(
            voter=vote.voter,
            voted_for=authors.get(vote.label, ""),
            label=vote.label,
            reason=preview(vote.reason, REASON_CHARACTERS),
        )
        for vote in run.votes.values()
    ]


def _dissent(view: RunView) -> list[Dissent]:
    run = view.snapshot
    if run.winner is None:
        return []
    return [
        Dissent(
            label=answer.label,
            votes=run.winner.votes[answer.label],
            preview=preview(answer.content, DISSENT_CHARACTERS),
        )
        for answer in run.current_answers
        if answer.label not in run.agreed and run.winner.votes.get(answer.label)
    ]


def _everything(view: RunView, final: str) -> str:
    """The final answer, then every answer that led to it."""
    answers = (f"## {answer.label} ({answer.agent})\n\n{answer.content}" for answer in view.snapshot.answers)
    return "\n\n".join([final, *answers])


def _answer_of(view: RunView, agent: str | None) -> str:
    agents = view.snapshot.agents
    if agent is None or agent not in agents:
        raise MassgenError("invalid_arguments", f"`agent` must be one of: {', '.join(agents) or 'none yet'}")
    if not agents[agent].answers:
        raise MassgenError("not_finished", f"{agent} has not answered yet")
    return agents[agent].answers[-1].content


def _paths(view: RunView, agent: str | None) -> dict[str, str]:
    """Absolute paths of what exists: the run directory, the final answer, and the asked agent's answer."""
    run, directory = view.snapshot, view.directory
    paths = {"run_directory": str(directory.path)}
    if run.winner and run.final_answer and not run.unkept:
        paths["final_answer"] = str(directory.final_of(run.winner.agent) / "answer.txt")
    if agent is not None and (path := run.agents[agent].answers[-1].path):
        paths["agent_answer"] = str(directory.path / path)
    return paths


def _page(text: str | None, offset: int, limit: int) -> tuple[str | None, int | None]:
    if text is None:
        return None, None
    end = offset + limit
    return text[offset:end], end if end < len(text) else None
