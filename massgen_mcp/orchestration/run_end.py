"""How a run ends that is not completed: cancelled, out of time, or without an agent; and how an agent does that never
acts. Pure.
"""

from massgen_mcp.errors import BackendError, DropReason, FailureReason
from massgen_mcp.events.agent_work import RuleViolated
from massgen_mcp.events.run import RunCancelled, RunFailed, RunTimedOut
from massgen_mcp.orchestration.conversation import Conversation
from massgen_mcp.orchestration.team import TeamLimits
from massgen_mcp.run_state.state import RunState

MAX_SAME_FAILURES = 5
"""The same failing call so many times in a row ends a round."""
MAX_SAME_REFUSALS = 10
"""More actions in a row that are refused for the same reason end a round, whatever tools are called between them."""
MAX_CAUSE = 200
"""Characters of what a model was told that are quoted."""


def cancelled(state: RunState) -> RunCancelled:
    winner, answer = state.best()
    return RunCancelled(winner=winner, answer=answer)


def timed_out(state: RunState, limits: TeamLimits) -> RunTimedOut:
    winner, answer = state.best()
    message = f"the run took longer than {limits.run_seconds:g} s"
    return RunTimedOut(message=message, winner=winner, answer=answer)


def nobody_left(state: RunState) -> RunFailed:
    """The reason is the one that all agents share, else no_quorum; the message tells every cause once, with its agents
    in the order of the team, whichever was dropped first. An answer that is there was not voted on.
    """
    dropped = [agent.dropped for agent in state.agents.values() if agent.dropped is not None]
    reasons: set[FailureReason] = {_AS_FAILURE.get(drop.reason, "no_quorum") for drop in dropped}
    fallen: dict[str, list[str]] = {}
    for drop in dropped:
        fallen.setdefault(drop.message, []).append(state.agents[drop.agent].info.id)
    causes = "; ".join(f"{', '.join(names)}: {message}" for message, names in fallen.items())
    reason = "budget" if "budget" in reasons else reasons.pop() if len(reasons) == 1 else "no_quorum"
    winner, answer = state.best()
    left = "no agent is left" if answer is None else "no agent is left to vote"
    return RunFailed(reason=reason, message=f"{left}: {causes}", winner=winner, answer=answer)


def never_acted(attempts: int, last: RuleViolated | None) -> BackendError:
    """Why an agent falls out after so many attempts in a row; `last` is what was wrong with the last one."""
    message = f"no accepted action in {attempts} attempts in a row"
    if last is not None and last.code == "cut_off":
        message = f"{message}; the last reply was cut off at the model's output limit; raise max_output_tokens"
    elif last is not None and last.code == "empty_reply":
        message = (
            f"{message}; its replies were empty: the prompt may be larger than the context that its server gives the "
            "model; raise that, or take another model"
        )
    elif last is not None and last.code != "no_action":
        message = f"{message}; the last one was refused: {' '.join(last.message.split())[:MAX_CAUSE]}"
    return BackendError("no_action", message)


def check_bounds(talk: Conversation, limits: TeamLimits, lack: str) -> None:
    """Raise `BackendError` for too many model calls in one piece of work, and for the same failing call again and
    again. `lack`: what has not come of it.
    """
    if talk.steps >= limits.steps_per_round:
        message = f"{lack} in {limits.steps_per_round} steps; raise max_steps_per_round in orchestrator"
        raise BackendError("no_action", message, limit="max_steps_per_round")
    failure = talk.repeated_failure
    if failure is None or failure.times < MAX_SAME_FAILURES:
        return
    call = " ".join(f"{failure.name} {failure.arguments}".split())[:MAX_CAUSE]
    last = " ".join(failure.result.split())[-MAX_CAUSE:]
    message = (
        f"the same call failed {failure.times} times in a row: {call}; the last result ended with: {last}. Give the "
        "team what the call lacks (see commands.md), or ask a stronger model"
    )
    raise BackendError("no_action", message, limit="repeated_call")


_AS_FAILURE: dict[DropReason, FailureReason] = {
    "auth": "auth",
    "quota_exhausted": "quota_exhausted",
    "rate_limited": "rate_limited",
    "model_not_found": "model_not_found",
    "unreachable": "unreachable",
    "tools_unsupported": "tools_unsupported",
    "context_too_small": "context_too_small",
    "content_filter": "content_filter",
    "timeout": "timeout",
    "no_action": "no_answer",
    "budget": "budget",
    "cut_off": "no_answer",
    "bad_reply": "no_answer",
    "internal": "internal",
}
