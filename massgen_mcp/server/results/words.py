"""What replies say about a run in words: what to do next, why it ended so, and what else the caller should know."""

import shutil
import sys
from datetime import datetime
from pathlib import Path

from massgen_mcp.changes.apply_records import applied_at
from massgen_mcp.config.models.config import Config
from massgen_mcp.events.parts import AgentInfo, Changes
from massgen_mcp.events.run import RunCancelled, RunFailed, RunTimedOut
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.patches.application import patch_command
from massgen_mcp.runs.view.run_view import NO_WORKER, RunView
from massgen_mcp.views.checks import MISUNDERSTANDING, check_notes, hindered, standing_in_tests
from massgen_mcp.views.ending import list_replacement_notes
from massgen_mcp.views.firmness import describe_vendors, list_limits, list_objections, why_weak
from massgen_mcp.views.plain_text import preview
from massgen_mcp.views.spent import money_notes
from massgen_mcp.views.votes_text import list_decisions, nobody_voted

AFTER_RESTART = "Set the keys and restart the server, then call control_run with action=resume."
AFTER_UPGRADE = "Upgrade massgen-mcp, then call control_run with action=resume."
NO_REAL_ANSWER = "Not a real answer: the agents are scripted."
NOT_WOKEN = "You won't be woken here: before your turn ends, call wait_run until the run ends."
WOKEN = "Do other work or end your turn; you will be woken with the result."
STILL_RUNNING = "Still running. Call wait_run again, or do other work first."
STILL_RUNNING_WOKEN = "Still running. Do other work or end your turn; you will be woken with the result."
REASON_CHARACTERS = 500
MAX_LOSSES, LOSS_CHARACTERS = 5, 200
"""Of MCP servers that were not there: so many are told, each at such length."""


def choose_waiting(*, woken: bool) -> str:
    """Return what a caller should do while its run works; `woken`: whether the end of the run wakes it."""
    return WOKEN if woken else NOT_WOKEN


def next_step(view: RunView, going_on: str = NOT_WOKEN) -> str:
    """For a caller who has not been given the answer, if there is one. `going_on`: what to do while the run works."""
    if view.damage is not None and view.ended:
        return salvage(view)
    match view.state:
        case "completed":
            if not view.snapshot.final_answer:
                return "Nothing more to do."
            if view.snapshot.work_done.unreviewed:
                return "No agent voted for this answer. Call get_result for the answer."
            if view.snapshot.work_done.weak:
                return "The decision is weak: get_result gives the reasons."
            return "Call get_result for the answer."
        case "failed" | "cancelled" | "timed_out" if view.snapshot.best_answer is not None:
            best = "an answer that got no votes" if view.snapshot.work_done.unreviewed else "the best answer so far"
            best = "the unfinished work" if view.snapshot.outcome == "unfinished" else best
            return f"get_result returns {best}. {after_the_end(view)}".rstrip()
        case _:
            return after_the_end(view) if view.ended else meanwhile(view, going_on)


def after_the_end(view: RunView) -> str:
    """What else there is to do when the run has ended; empty if nothing is."""
    match view.snapshot.end:
        case RunFailed(reason="budget"):
            return f"Start a new run with a larger {view.snapshot.budget.reached}."
        case RunFailed():
            return "Fix the cause given in `reason`, then start a new run."
        case RunTimedOut():
            return "Start a new run with a larger max_seconds."
        case RunCancelled() if view.snapshot.best_answer is None:
            return "Start a new run."
        case _:
            return ""


def meanwhile(view: RunView, going_on: str = NOT_WOKEN) -> str:
    """What to do while the run has not ended; `going_on`: while it works."""
    match view.state:
        case "queued" | "interrupted" if _waits_for_worker(view):
            return "The run will continue when the operator starts a worker; tell the user, and call wait_run later."
        case "queued" if view.ahead:
            runs = f"{view.ahead} runs are" if view.ahead > 1 else "One run is"
            return f"{runs} ahead of this one in the queue. {going_on}"
        case "input_required":
            return _decide(view)
        case "interrupted" if view.held_up_by is None:
            return "The run's process ended unexpectedly, and another process is continuing the run; call wait_run."
        case "interrupted" if view.row.moved:
            return "Ask the user where to continue the run."
        case "interrupted" if view.newer is None:
            return f"This server's environment lacks the run's keys. {AFTER_RESTART}"
        case "interrupted":
            return f"This server's massgen-mcp is too old. {AFTER_UPGRADE}"
        case _:
            return going_on


def _waits_for_worker(view: RunView) -> bool:
    return (view.held_up_by or "").startswith(NO_WORKER)


def bringing_in(view: RunView, changes: Changes | None, agent: str | None, apply: str = "apply_result") -> str:
    """How a patch comes into the caller's directories, by the command `apply`: of the run, or of the `agent` of this
    id; empty without one.
    """
    if changes is None or changes.patch is None:
        return ""
    if (moment := applied_at(view.directory.changes)) is not None:
        stands = f"{datetime.fromtimestamp(moment).astimezone():%Y-%m-%d %H:%M}"
        undo = "apply_result with undo=true" if apply == "apply_result" else f"{apply.rstrip('`')} --undo`"
        return f"Applied at {stands}; {undo} reverts the changes."
    if command := patch_command(view.snapshot, changes, view.directory.path):
        return f"The directory was read-only for the run, so apply the changes by hand: {command}"
    return f"To apply it: {apply}{(f' agent={agent}' if agent else '')}."


def _decide(view: RunView) -> str:
    asked = view.snapshot.input_required
    if asked is not None and asked.kind == "budget_reached":
        ways = "action=raise_budget and value (the user must agree), action=finish_now or action=cancel"
        return f"Decide: call control_run with {ways}."
    return "Decide: call control_run with action=answer and message."


def salvage(view: RunView) -> str:
    """What can still be read of a run whose record is damaged."""
    if not view.directory.path.exists():
        return "Start a new run if you still need an answer."
    answered = ", ".join(agent.info.id for agent in view.snapshot.agents.values() if agent.answers)
    where = "get_result with view=agent (`massgen result --agent`)"
    whole = f"{where} returns earlier answers by {answered}. " if answered else ""
    return f"{whole}The undamaged files are in {view.directory.path}. Start a new run to get the rest."


def note_on(view: RunView) -> str | None:
    run = view.snapshot
    agents, work = run.agents.values(), run.work_done
    scripted = bool(agents) and all(agent.info.backend == "scripted" for agent in agents)
    notes = [NO_REAL_ANSWER] if scripted and view.ended else []  # before that there is no answer to be taken for one
    if not scripted or run.budget_reached:
        notes += money_notes(run)
    notes += list_replacement_notes(run)
    notes += list_limits(work)
    notes += [f"{hindered(one)}." for one in work.void] if not view.ended else []
    newer = ["A newer massgen-mcp version wrote parts of this run that this version can't show."] if view.newer else []
    return " ".join([*notes, *newer]) or None


def note_on_result(view: RunView) -> str | None:
    """`note_on` with how firm the decision is, what decided beyond the votes (which answers say the same, a run-off,
    a tie), and with the MCP servers that agents had to do without.
    """
    decided = list_decisions(view.snapshot)
    unfinished = nobody_voted(view.snapshot) if view.snapshot.outcome == "unfinished" else None
    parts = [*dict.fromkeys(filter(None, [unfinished, *why_weak(view.snapshot, checks=False)]))]
    parts += [f"How it was decided: {'; '.join(decided)}."] if decided else []
    parts += [f"{note}." for note in check_notes(view.snapshot)]
    standing = standing_in_tests(view.snapshot)
    parts += [f"{standing}. {MISUNDERSTANDING}."] if standing else []
    lost = [shortened(f"{one}.", LOSS_CHARACTERS) for one in view.snapshot.server_losses[:MAX_LOSSES]]
    rest = [note_on(view), *list_objections(view.snapshot), describe_vendors(view.snapshot)]
    return " ".join([*parts, *lost, *filter(None, rest)]) or None


def note_on_team(config: Config) -> str | None:
    """`note_on` before a run has begun."""
    return NO_REAL_ANSWER if all(agent.backend.type == "scripted" for agent in config.agents) else None


def reason_of(view: RunView, limit: int | None = REASON_CHARACTERS) -> str | None:
    """Why the run ended otherwise than completed, or does not go on; `limit` in characters, None for all of it."""
    if view.damage is not None:
        return f"{view.damage.code}: {shortened(str(view.damage), limit)}"
    match view.snapshot.end:
        case RunFailed() as end:
            return f"{end.reason}: {shortened(end.message, limit)}"
        case RunTimedOut() as end:
            return shortened(end.message, limit)
        case _:
            if asked := view.snapshot.input_required:
                return f"{asked.kind}: {shortened(asked.text, limit)}"
            if view.row.moved:
                return shortened(view.row.moved, limit)
            if view.held_back_by is not None:
                return f"provider_limit: {shortened(view.held_back_by, limit)}"
            if _waits_for_worker(view):
                return view.held_up_by
            if view.state != "interrupted":
                return None
            if view.newer is not None:
                return f"{view.newer.code}: {shortened(str(view.newer), limit)}"
            return f"runner_lost: {view.held_up_by}" if view.held_up_by else "runner_lost"


def find_own_program() -> str:
    """Return how a user calls `massgen`: by its path where their shell does not find it by its name."""
    beside = Path(sys.argv[0]).with_name("massgen")
    is_hidden = beside.is_absolute() and beside.is_file() and shutil.which(beside.name) is None
    if is_hidden:
        return str(beside)
    return "massgen"


def shortened(text: str, limit: int | None) -> str:
    """On one line; whole with None."""
    return " ".join(text.split()) if limit is None else preview(text, limit)


# -- one agent has one name in every reply, the id of its config, with its model beside it ----------------------------
# The records of a run and its files call agents `agent_a`, `agent_b`, …; a caller may name an agent so, too.


MODEL_CHARACTERS = 24
"""Of a model's name beside each mention of an agent; the team has it whole."""


def team_of(config: Config) -> dict[str, str]:
    """Each agent's id, and its model with the provider's name."""
    return {agent.id: agent.models for agent in config.agents}


def team_of_run(run: RunState) -> dict[str, str]:
    infos = (agent.info for agent in run.agents.values())
    return {info.id: f"{info.backend}/{info.model}" for info in infos}


def team_text(team: dict[str, str]) -> str:
    return ", ".join(f"{agent} ({model})" for agent, model in team.items())


def with_model(info: AgentInfo) -> str:
    """`claude (claude-opus-5-5)`; nothing is said twice where the id holds the model's name already."""
    model = info.model.rpartition("/")[2]
    return info.id if model in info.id else f"{info.id} ({model[:MODEL_CHARACTERS]})"
