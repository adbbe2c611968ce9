"""What a person reads when a run has ended, beside its answer: above it how it ended, below it votes, cost, files, what
helps against a failure, and what to do next. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.errors import DropReason, FailureReason, LimitKey
from massgen_mcp.events.run import RunFailed, RunTimedOut
from massgen_mcp.run_state.facts import LATE
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.checks import check_notes, tests_notes
from massgen_mcp.views.firmness import describe_vendors
from massgen_mcp.views.names import name_agent
from massgen_mcp.views.outcome import describe_outcome
from massgen_mcp.views.plain_text import plain, preview
from massgen_mcp.views.spent import clock, money_notes, spent_figures, spent_text
from massgen_mcp.views.styled import Line, Span, wrap
from massgen_mcp.views.votes_text import votes_lines

_LABEL = 7
_MESSAGE = 300
_REASON = 120
_SHORT_ID = 12
"""Characters of a run's id that tell it from others."""

RUN_LIMIT = "Raise `orchestrator_timeout_seconds` under `timeout_settings` in the config."
"""Against the time limit of a run."""

REMEDIES: Mapping[FailureReason | DropReason, str] = {
    "auth": "Set the right key; `massgen doctor` shows which keys are set.",
    "quota_exhausted": "Add credit to your account at the provider, or use other models with --model.",
    "rate_limited": "Wait, or run fewer agents at once: set `limits` in the config, or pass --num-agents.",
    "model_not_found": "Correct `model` in the config, or --model; `massgen doctor` lists the models on local servers.",
    "unreachable": "Check the network and `base_url`, or start the server; `massgen doctor` tests local servers.",
    "tools_unsupported": "Use another model with --model, or enable tool calls on the model server.",
    "context_too_small": "Use another model with --model, or start the model server with a larger context.",
    "content_filter": "Rephrase the question, or use other models with --model.",
    "timeout": "Raise the time limit under `timeout_settings` in the config.",
    "budget": "Raise the budget: `max_usd` (--max-usd), `max_tokens` or `max_calls` under `budget`.",
    "bad_reply": "Check that `base_url` is the address of the model's API, or use other models with --model.",
    "cut_off": "`massgen result` shows the agent's changes so far.",
    "no_quorum": "Use other models with --model; `massgen result` shows the agents' replies.",
    "no_answer": "Use other models with --model; `massgen result` shows the agents' replies.",
    "no_action": "Use other models with --model; `massgen result` shows the agents' replies.",
    "sandbox_denied": "`massgen doctor` shows what this machine needs to run agents' commands.",
    "config_invalid": "Correct the config; `massgen validate FILE` lists all its errors.",
    "bad_request": "Correct the config; `massgen validate FILE` lists all its errors.",
    "runner_lost": "Start a new run; `massgen doctor` looks for problems on this machine.",
    "provider_error": "Try again later, or use other models with --model.",
    "internal": "`massgen doctor` looks for problems on this machine; --debug shows details.",
}
"""What a person can do about an agent or a run that failed: the setting or the command that changes it."""


@dataclass(frozen=True, slots=True)
class RemainingFiles:
    """What is left of a run: absolute paths, None where there is nothing, and whether it is in the list of runs."""

    directory: Path | None = None
    answer: Path | None = None
    copy: Path | None = None
    """The file that the caller wanted the answer in."""
    report: Path | None = None
    """The run as a page to look at."""
    listed: bool = False


OF_LIMITS: Mapping[LimitKey, str] = {
    "max_usd": "Raise `max_usd` under `budget` in the config, or pass a larger --max-usd.",
    "max_tokens": "Raise `max_tokens` under `budget` in the config.",
    "max_calls": "Raise `max_calls` under `budget` in the config.",
    "max_steps_per_round": "Raise `max_steps_per_round` under `orchestrator` in the config.",
    "repeated_call": "Fix what makes the repeated tool call fail, or use other models with --model.",
}
"""The same, where it is known which limit was met."""


def ending_lines(run: RunState, kept: RemainingFiles, width: int) -> list[Line]:
    """The votes as sentences, dissent first; who failed and what helps; cost; files; the next step."""
    lines: list[Line] = []
    votes = votes_lines(run, width, below_outcome=bool(describe_outcome(run))) if len(run.agents) > 1 else []
    tests = [
        (Span(part, "dim" if quiet else ""),)
        for note, quiet in tests_notes(run)
        for part in wrap(note, width, indent=2)
    ]
    for title, rows in (("Votes", votes), ("Tests", tests)):
        lines += [(Span(title, "title"),), *rows, ()] if rows else []
    for agent, reason, message in _list_untold_losses(run):
        lines += _row("!", f"{describe_loss(name_agent(run, agent), reason)}: {preview(message, _MESSAGE)}", width)
    for loss in (*list_replacement_notes(run), *run.server_losses, *check_notes(run)):
        lines += _row("!", preview(loss, _MESSAGE), width)
    lines += [row for help_ in helps(run) for row in _row("", help_, width)]
    if vendors := describe_vendors(run):
        lines += _row("Team", vendors, width)
    lines += _row("Cost", spent_text(run.spent), width)
    if run.budget_reached or run.budget.spending.bounds:
        lines += [row for note in money_notes(run) for row in _row("", note, width)]
    places = (("Answer", kept.copy), ("Answer", kept.answer), ("Page", kept.report), ("Files", kept.directory))
    for label, path in places:
        if path is not None:
            lines.append((Span(f"{label:<{_LABEL}}", "dim"), Span(plain(str(path)))))
    if kept.listed:
        lines += _row("Next", _next_step(run), width)
    return lines


def _list_untold_losses(run: RunState) -> list[tuple[str, str, str]]:
    """List lost agents, except those whose reason stands in the outcome of a failed run."""
    told = ""
    if isinstance(run.end, RunFailed):
        told = run.end.message
    return [loss for loss in run.degraded if loss[2] not in told]


def list_replacement_notes(run: RunState) -> list[str]:
    """Return which fallbacks took the place of their agents' own models, and why."""
    return [
        f"{agent.own_model} (agent {agent.info.id}) failed ({agent.replaced.reason}: "
        f"{preview(agent.replaced.message, _REASON)}); {agent.info.backend}/{agent.info.model} replaced it."
        for agent in run.agents.values()
        if agent.replaced is not None
    ]


def helps(run: RunState) -> list[str]:
    """What helps against the failures, each once. That there is no answer follows from what became of the agents."""
    found = [choose_remedy(gone.reason, gone.limit) for gone in run.dropped]
    match run.end:
        case RunFailed(reason="budget"):
            found.append(OF_LIMITS[run.budget.reached])
        case RunFailed(reason="no_answer") if found:
            pass
        case RunFailed(reason=reason):
            found.append(REMEDIES[reason])
        case RunTimedOut():
            found.append(RUN_LIMIT)
        case _:
            pass
    return list(dict.fromkeys(found))


def describe_loss(agent: str, reason: str) -> str:
    """Say that a run ended without an agent, or without its answer."""
    if reason == LATE:
        return f"{agent} was left out ({reason})"
    return f"{agent} was dropped ({reason})"


def choose_remedy(reason: DropReason, limit: LimitKey | None) -> str:
    """Return what helps an agent that was dropped."""
    return REMEDIES[reason] if limit is None else OF_LIMITS[limit]


def _next_step(run: RunState) -> str:
    run_id = run.run_id[:_SHORT_ID]
    if run.best_changes is not None and run.best_changes.count:
        return f"`massgen result {run_id} --view diff` shows the changes, `--view full` every answer and vote"
    if run.answers:
        return f"`massgen result {run_id} --view full` shows every answer and vote"
    return f"`massgen status {run_id}` shows each agent's state"


def _row(label: str, text: str, width: int) -> list[Line]:
    head, *rest = wrap(text, width - _LABEL)
    style = "bad" if label == "!" else "dim"
    return [(Span(f"{label:<{_LABEL}}", style), Span(head)), *((Span(" " * _LABEL + row),) for row in rest)]


def outcome_line(run: RunState) -> Line:
    """How the run ended, in a line above its answer."""
    figures = " · ".join([clock(run.elapsed(run.updated_at or 0.0)), *spent_figures(run.spent)])
    match run.state:
        case "completed":
            how = describe_outcome(run) or "answered"
            if run.work_done.weak:
                return (Span(f"☆ {run.author} · weak: {how}", "busy"), Span(f" · {figures}", "dim"))
            return (Span(f"★ {run.author}", "good"), Span(f" · {how} · {figures}", "dim"))
        case "cancelled":
            return (Span(f"Cancelled{_best(run)}", "busy"), Span(f" · {figures}", "dim"))
        case "timed_out":
            why = run.end.message if isinstance(run.end, RunTimedOut) else ""
            return (Span(plain(f"Timed out{_best(run)}: {why}"), "busy"), Span(f" · {figures}", "dim"))
        case _:
            why = f" ({run.end.reason}): {preview(run.end.message, 500)}" if isinstance(run.end, RunFailed) else ""
            best = _best(run) if run.best_answer is not None else ""
            return (Span(plain(f"✗ Failed{best}{why}"), "bad"),)


def _best(run: RunState) -> str:
    return "; there is no answer yet" if run.best_answer is None else f"; the best answer so far is {run.author}'s"
