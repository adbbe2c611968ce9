"""`status.json`: the snapshot in the shape that MassGen's automation users read. Keys are a contract: docs/records.md.

Must not know files or clocks: the caller passes the time and writes the file.
"""

from collections.abc import Mapping
from typing import Any

from massgen_mcp.run_state.agents import AgentState
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import Phase
from massgen_mcp.views.checks import checks
from massgen_mcp.views.firmness import list_limits, why_weak
from massgen_mcp.views.nested_runs import nested_runs
from massgen_mcp.views.spent import spent_json

PREVIEW = 200
REASON_PREVIEW = 100
_PHASES: Mapping[Phase, str] = {
    "answering": "initial_answer",
    "voting": "enforcement",
    "presenting": "presentation",
    "evaluating": "presentation",
}
"""In MassGen's words."""


def status_json(
    run: RunState, *, log_dir: str, session_id: str, now: float, applied: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Build the status document. `now` and all times in it are seconds since the epoch. `applied`: what became of the
    changes to the caller's files.
    """
    meta = {
        "last_updated": now,
        "session_id": session_id,
        "log_dir": log_dir,
        "question": run.question,
        "start_time": run.started_at,
        "elapsed_seconds": round(run.elapsed(now), 3),
    }
    telemetry: dict[str, Any] = {
        "total_calls": run.spent.calls,
        "by_model": {model: spent_json(spent) for model, spent in run.budget.spending.by_model.items()},
        "by_agent": {agent: spent_json(spent) for agent, spent in run.budget.spending.by_agent.items()},
    }
    if run.parent:
        meta["parent_run_id"] = run.parent
    if run.nested_ends:
        telemetry["nested"] = spent_json(run.budget.spending.nested)
    optional = {"checks": checks(run), "nested_runs": nested_runs(run), "applied": applied}
    return {
        "meta": meta,
        "coordination": {
            "phase": _PHASES[run.phase],
            "active_agent": _active_agent(run),
            "completion_percentage": run.progress,
            "is_final_presentation": run.phase == "presenting" or run.state == "completed",
        },
        "agents": {name: _agent_status(run, view) for name, view in run.agents.items()},
        "results": _results(run),
        "telemetry": telemetry,
        **{name: part for name, part in optional.items() if part},
    }


def _results(run: RunState) -> dict[str, Any]:
    """Build how the run stands, or ended: in every ending with the best answer that it had."""
    work = run.work_done
    results: dict[str, Any] = {
        "votes": run.tally if run.winner is None else run.winner.votes,
        "winner": None,
        "final_answer_preview": (run.best_answer or "")[:PREVIEW] or None,
        "outcome": run.outcome,
        "weak": [*work.weak],
        "failure": work.failure,
    }
    if run.end is not None:
        results["winner"] = run.end.winner
        if notes := [*why_weak(run), *list_limits(work)]:
            results["cautions"] = notes
    return results


def _active_agent(run: RunState) -> str | None:
    """The one agent that is at work, if it is just one."""
    streaming = [name for name, view in run.agents.items() if view.status == "streaming"]
    return streaming[0] if len(streaming) == 1 else None


def _agent_status(run: RunState, view: AgentState) -> dict[str, Any]:
    vote = run.votes.get(view.info.name)
    error = view.dropped and {
        "type": "timeout" if view.dropped.reason == "timeout" else "error",
        "reason": view.dropped.reason,
        "message": view.dropped.message,
        "timestamp": view.dropped_at,
    }
    return {
        "status": "voted" if vote is not None and view.status == "completed" else view.status,
        "answer_count": len(view.answers),
        "latest_answer_label": view.latest_label,
        "vote_cast": vote
        and {
            "voted_for_agent": run.coordination.author(vote.label),
            "voted_for_label": vote.label,
            "reason_preview": vote.reason[:REASON_PREVIEW],
        },
        "times_restarted": view.restarts,
        "last_activity": view.last_activity,
        "error": error,
    }
