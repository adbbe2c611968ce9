"""Nested runs: one in a few lines of text, as agents read it that can start some; and all of a run, in its records."""

from typing import Any

from massgen_mcp.events.run import RunFailed, RunTimedOut
from massgen_mcp.run_state.agents import AgentState
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.ending import describe_loss
from massgen_mcp.views.plain_text import counted
from massgen_mcp.views.spent import spent_text


def nested_runs(run: RunState) -> dict[str, dict[str, Any]]:
    """Those that were started inside the run, by id. `state` is `running` until the run knows of their end."""
    return {
        run_id: {
            "started_by": started.agent,
            "source": started.source,
            "state": ended.state if (ended := run.nested_ends.get(run_id)) else "running",
            "max_usd": started.max_usd,
            "max_tokens": started.max_tokens,
        }
        for run_id, started in run.nested_runs.items()
    }


def status_lines(run: RunState, now: float) -> list[str]:
    """`now`: seconds since the epoch."""
    doing = f" ({run.phase}, {run.progress}%)" if run.state == "running" else ""
    head = f"{run.run_id}: {run.state}{doing}, {run.elapsed(now):.1f} s, {spent_text(run.spent)}"
    return [head, *(_agent_words(name, agent) for name, agent in run.agents.items()), *_why(run)]


def result_lines(run: RunState, now: float) -> list[str]:
    """What stands before the answer."""
    outcome = f" ({run.outcome})" if run.outcome else ""
    winner = [f"winner {run.winner.agent}, votes {run.winner.votes}"] if run.winner else []
    lost = [f"{describe_loss(name, reason)}: {message}" for name, reason, message in run.degraded]
    head = f"{run.run_id}: {run.state}{outcome}, {run.elapsed(now):.1f} s, {spent_text(run.spent)}"
    return [head, *winner, *lost, *run.server_losses, *_why(run)]


def _agent_words(name: str, agent: AgentState) -> str:
    dropped = f", {agent.dropped.reason}" if agent.dropped else ""
    return f"{name}: {agent.status}, {counted(len(agent.answers), 'answer')}{dropped}"


def _why(run: RunState) -> list[str]:
    match run.end:
        case RunFailed():
            return [f"{run.end.reason}: {run.end.message}"]
        case RunTimedOut():
            return [run.end.message]
        case _:
            return []
