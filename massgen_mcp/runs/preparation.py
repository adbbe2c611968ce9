"""Prepares a run: limits it to what its outer run may do, and finds the changes that it continues. `starting` then only
stores it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from massgen_mcp.config.adjusted import with_places
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import PARENT_VARIABLE, enclosing_run
from massgen_mcp.money.budget import caps_of_next
from massgen_mcp.request.reach import NestedRunLimits, nested_config
from massgen_mcp.runs.access import RunAccess
from massgen_mcp.runs.engine import Engine, FrozenRequest, NewRun, new_run_id
from massgen_mcp.runs.patches.earlier_changes import find_earlier_changes
from massgen_mcp.runs.patches.given import UPLOADED
from massgen_mcp.runs.starting import PreparedRun
from massgen_mcp.runs.store.counting import find_usual_seconds
from massgen_mcp.runs.view.run_view import RunView, RunWatch

if TYPE_CHECKING:  # what reads runs needs nothing of how one is built
    from massgen_mcp.request.build import RunRequest


def prepare(access: RunAccess, request: "RunRequest") -> PreparedRun:
    """Return the run that the request asks for. In a process that works inside a run it is nested in that run.

    Blocks. Raises `MassgenError` nesting_refused, config_invalid, idempotency_conflict, and as `find_earlier_changes`.
    """
    engine, given = access.engine, request.given
    engine.home.ensure()
    outer = _find_outer(engine, access.environ)
    stored = freeze(request)
    if outer is not None:
        stored = _freeze_inside(outer, request, access.environ)
    if not stored.usual_seconds:
        stored = replace(stored, usual_seconds=find_usual_seconds(engine, stored.config))
    uploaded = None
    if given.uploads:
        uploaded = request.config
        stored = replace(stored, config=with_places(stored.config, lambda path: f"{UPLOADED}{path}"))
    owner, key = engine.owner, given.idempotency_key
    row = NewRun(
        new_run_id(),
        request.question,
        request.source,
        fingerprint=access.dispatch.identity(stored.config),
        request_hash=_hash(request),
        idempotency_key=f"{owner}\n{key}" if owner and key is not None else key,
        session_id=given.session_id,
        parent=outer and outer.row.run_id,
        admitted=outer is None,
        owner=owner,
        usd=stored.config.budget.max_usd,
        kind=stored.kind,
    )
    earlier = engine.store.queue.find_reusable(row, given.on_conflict)
    if given.changes_of is not None and earlier is None:
        row = replace(row, turns_over=access.sessions.list_ended_numbers(given.session_id))
        ended = access.sessions.ended(given.session_id)
        stored = replace(stored, begins_with=find_earlier_changes(given.changes_of, request, stored.config, ended))
    return PreparedRun(row, stored, request.redactor, given.on_conflict, outer, uploaded, earlier)


def _find_outer(engine: Engine, environ: Mapping[str, str]) -> RunView | None:
    """Return the run inside which a process of this environment works."""
    run_id = enclosing_run(environ)
    if run_id is None:
        return None
    try:
        return RunWatch(engine, run_id, lambda _: None).look()
    except MassgenError as error:
        message = f"cannot read run {run_id[:80]} ({PARENT_VARIABLE}), which started this process: {error}"
        raise MassgenError("nesting_refused", message) from error


def freeze(request: "RunRequest") -> FrozenRequest:
    """Return the request to store for a run that isn't nested and doesn't continue an earlier one."""
    bounded = request.config.budget.bounds_prices
    return FrozenRequest(request.question, request.config, bounded=bounded, kind=request.given.kind)


def _freeze_inside(outer: RunView, request: "RunRequest", environ: Mapping[str, str]) -> FrozenRequest:
    """Return the request of a nested run, within the limits of the outer run.

    What is left of those limits is only an estimate: the process that executes the outer run admits the new run or
    refuses it.
    """
    asked, run = outer.directory.read_request(), outer.snapshot
    nested, started = asked.config.nested, len(outer.snapshot.nested_runs)
    run_id = outer.row.run_id
    if outer.ended:
        raise MassgenError("nesting_refused", f"the parent run {run_id} is {outer.state}")
    if nested is None:
        message = f"the config of run {run_id} doesn't allow nested runs; add `nested: {{}}` to it"
        raise MassgenError("nesting_refused", message)
    if asked.levels == 0:
        raise MassgenError("nesting_refused", asked.depth_reached())
    if started >= nested.max_runs:
        message = f"run {run_id} has already started {started} nested runs, the maximum (max_runs)"
        raise MassgenError("nesting_refused", message)
    caps = caps_of_next(run.budget, nested, started, run.budget.free, None)
    if caps is None:
        message = (
            f"nested runs may use {nested.share_of_budget:.0%} of the budget (share_of_budget), "
            "and not enough of that is left"
        )
        raise MassgenError("nesting_refused", message)
    seconds = asked.config.timeout_settings.orchestrator_timeout_seconds - run.resume_point.seconds
    bounds = NestedRunLimits(caps.usd, caps.tokens, caps.calls, max(1.0, seconds))
    bounded = nested_config(asked.config, request.config, bounds, environ, (outer.directory.path,))
    return asked.inside(run_id, request.question, bounded)


def _hash(request: "RunRequest") -> str:
    parts = [request.question, request.config.model_dump(mode="json"), request.given.session_id]
    document = json.dumps([*parts, *filter(None, [request.given.changes_of])], sort_keys=True)
    return hashlib.sha256(document.encode()).hexdigest()
