"""`status.json`: the snapshot in the shape that MassGen's automation users read. Keys are a contract: docs/records.md.

Must not know files or clocks: the caller passes the time and writes the file.
"""

from collections.abc import Mapping
from typing import Any

from massgen_mcp.run_state.agents import AgentState
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import Phase
from massgen_mcp.views.checks import checks
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


def status_json(run: RunState, *, log_dir: str, session_id: str, now: float) -> dict[str, Any]:
    """The status document. `now` and all times in it are seconds since the epoch."""
    nested = {"nested": spent_json(run.budget.spending.nested)} if run.nested_ends else {}
    return {
        "meta": {
            "last_updated": now,
            "session_id": session_id,
            "log_dir": log_dir,
            "question": run.question,
            "start_time": run.started_at,
            "elapsed_seconds": round(run.elapsed(now), 3),
            **({"parent_run_id": run.parent} if run.parent else {}),
        },
        "coordination": {
            "phase": _PHASES[run.phase],
            "active_agent": _active_agent(run),
            "completion_percentage": run.progress,
            "is_final_presentation": run.phase == "presenting" or run.state == "completed",
        },
        "agents": {name: _agent_status(run, view) for name, view in run.agents.items()},
        "results": {
            "votes": run.tally if run.winner is None else run.winner.votes,
            "winner": run.answered_by,
            "final_answer_preview": run.final_answer[:PREVIEW] if run.final_answer else None,
        },
        "telemetry": {
            "total_calls": run.spent.calls,
            "by_model": {model: spent_json(spent) for model, spent in run.budget.spending.by_model.items()},
            "by_agent": {agent: spent_json(spent) for agent, spent in run.budget.spending.by_agent.items()},
            **nested,
        },
        **({"checks": checked} if (checked := checks(run)) else {}),
        **({"nested_runs": nested_runs(run)} if run.nested_runs else {}),
    }


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
