"""What a program may start that works inside a run, such as our MCP server there: as much as an agent of that run.

Only an estimate of what is left: whoever executes the outer run decides, and admits the new run or refuses it.
"""

from collections.abc import Mapping

from massgen_mcp.errors import MassgenError
from massgen_mcp.home import PARENT_VARIABLE, enclosing_run
from massgen_mcp.money.nested import caps_of_next
from massgen_mcp.request.nested import NestedRunLimits, nested_config
from massgen_mcp.request.run_request import RunRequest
from massgen_mcp.runs.engine import Engine
from massgen_mcp.runs.engine.rows import FrozenRequest
from massgen_mcp.runs.starting import Dispatch
from massgen_mcp.runs.view.run_view import RunView, RunWatch


def enclosing(engine: Engine, environ: Mapping[str, str]) -> RunView | None:
    """The run inside which a process of this environment works. Raises `MassgenError` nesting_refused if there is no
    such run here.
    """
    run_id = enclosing_run(environ)
    if run_id is None:
        return None
    try:
        return RunWatch(engine, run_id, lambda _: None).look()
    except MassgenError as error:
        message = f"this process works inside run {run_id[:80]} ({PARENT_VARIABLE}), which cannot be read: {error}"
        raise MassgenError("nesting_refused", message) from error


def frozen_request(request: RunRequest, outer: RunView | None, environ: Mapping[str, str]) -> FrozenRequest:
    """The request as it is executed, inside `outer` if there is one; without its session's turns. Raises `MassgenError`
    nesting_refused, saying which limit is reached, config_invalid.
    """
    if outer is None:
        return FrozenRequest(request.question, request.config)
    asked, run = outer.directory.read_request(), outer.snapshot
    nested, started = asked.config.nested, len(outer.snapshot.nested_runs)
    run_id = outer.row.run_id
    if outer.ended:
        raise MassgenError("nesting_refused", f"run {run_id}, inside which this would start, is {outer.state}")
    if nested is None:
        message = f"the config of run {run_id} says nothing of nested runs, so none may be started inside it"
        raise MassgenError("nesting_refused", message)
    if asked.levels == 0:
        raise MassgenError("nesting_refused", asked.depth_reached())
    if started >= nested.max_runs:
        message = f"{started} runs were started inside run {run_id}, and no more may be (max_runs)"
        raise MassgenError("nesting_refused", message)
    caps = caps_of_next(run.budget, nested, started, run.budget.free, None)
    if caps is None:
        message = (
            f"too little is left of the {nested.share_of_budget:.0%} of the budget for nested runs (share_of_budget)"
        )
        raise MassgenError("nesting_refused", message)
    seconds = asked.config.timeout_settings.orchestrator_timeout_seconds - run.resume_point.seconds
    bounds = NestedRunLimits(caps.usd, caps.tokens, max(1.0, seconds))
    bounded = nested_config(asked.config, request.config, bounds, environ, (outer.directory.path,))
    return FrozenRequest(request.question, bounded, nesting=asked.nested_in(run_id))


def ask_to_admit(engine: Engine, environ: Mapping[str, str], outer: RunView, run_id: str) -> None:
    """Have whoever executes the outer run set aside what this one may spend, and let it begin. Safe to repeat."""
    engine.store.want(outer.row.run_id, "admit", run_id)
    Dispatch(engine, environ).see_to(outer)
    engine.liveness.announce(outer.row, outer.directory)
