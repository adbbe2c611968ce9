"""What a program may start that works inside a run, such as our MCP server there: as much as an agent of that run.

Only an estimate of what is left: whoever executes the outer run decides, and admits the new run or refuses it.
"""

from collections.abc import Mapping

from massgen_mcp.errors import MassgenError
from massgen_mcp.money.nested import caps_of_next
from massgen_mcp.request.nested import Bounds, nested_config
from massgen_mcp.request.run_request import RunRequest
from massgen_mcp.runs.run_view import RunView
from massgen_mcp.runs.starting import Within


def within_run(outer: RunView, request: RunRequest, environ: Mapping[str, str]) -> Within:
    """The request as a run inside `outer`. Raises `MassgenError` nesting_refused, saying which limit is reached."""
    asked, run = outer.directory.read_request(), outer.snapshot
    nested = asked.config.nested
    if outer.ended:
        raise MassgenError(
            "nesting_refused", f"run {outer.row.run_id}, inside which this would start, is {outer.state}"
        )
    if nested is None:
        told = f"the config of run {outer.row.run_id} says nothing of nested runs, so none may be started inside it"
        raise MassgenError("nesting_refused", told)
    if asked.levels == 0:
        raise MassgenError("nesting_refused", asked.depth_reached())
    started = len(run.nested_runs)
    if started >= nested.max_runs:
        raise MassgenError("nesting_refused", f"{started} runs were started inside it, and no more may be (max_runs)")
    budget = run.budget
    aside = budget.set_aside.values()
    free = (
        budget.max_usd - budget.spent.usd - sum(usd for usd, _ in aside),
        budget.max_tokens - budget.spent.tokens - sum(tokens for _, tokens in aside),
    )
    caps = caps_of_next(budget, nested, started, free, None)
    if caps is None:
        told = f"too little is left of the {nested.share_of_budget:.0%} of the budget for nested runs (share_of_budget)"
        raise MassgenError("nesting_refused", told)
    seconds = asked.config.timeout_settings.orchestrator_timeout_seconds - run.resume_point.seconds
    bounds = Bounds(caps.usd, caps.tokens, max(1.0, seconds))
    granted = (outer.directory.path,)
    config = nested_config(asked.config, request.config, bounds, environ, granted)
    return Within(asked.nested_in(outer.row.run_id), config)
