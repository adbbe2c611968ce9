"""A run is begun: its request becomes durable, its row makes it known, and a runner is woken or started for it."""

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from massgen_mcp.config.access.key_hosts import describe_refusal
from massgen_mcp.config.loader import missing_keys, refused_keys, require_keys
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import JournalNewer, MassgenError, storage_fault
from massgen_mcp.home import PARENT_VARIABLE, enclosing_run
from massgen_mcp.money.budget import caps_of_next
from massgen_mcp.request.reach import NestedRunLimits, nested_config
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.consent import WAITING, read_demands, require_consent
from massgen_mcp.runs.engine import Added, Engine, FileStore, FrozenRequest, NewRun, RunRow, SessionMoved, new_run_id
from massgen_mcp.runs.patches.earlier_changes import with_earlier_changes
from massgen_mcp.runs.patches.given import upload_base
from massgen_mcp.runs.sessions.turns import SessionHistory, SessionTurns
from massgen_mcp.runs.store.credentials import identity
from massgen_mcp.runs.view.run_view import NO_WORKER, RunView, RunWatch

if TYPE_CHECKING:  # what reads runs needs nothing of how one is built
    from massgen_mcp.request.build import RunRequest

_RESUME = "control_run resume (`massgen resume`)"


def enqueue(
    engine: Engine,
    sessions: SessionTurns,
    request: "RunRequest",
    frozen: FrozenRequest,
    identity: Callable[[Config], str],
) -> tuple[Added, SessionHistory]:
    """Directory first, row last: a run that the store knows is whole. `frozen` gets its session's turns.
    Raises as `RunQueue.add` and `with_earlier_changes`.
    """
    engine.home.ensure()
    owner, key = engine.owner, request.given.idempotency_key
    run = NewRun(
        new_run_id(),
        request.question,
        request.source,
        fingerprint=identity(frozen.config),
        request_hash=_hash(request),
        idempotency_key=f"{owner}\n{key}" if owner and key is not None else key,
        session_id=request.given.session_id,
        parent=frozen.nesting and frozen.nesting.parent,
        admitted=frozen.nesting is None,
        owner=owner,
        usd=frozen.config.budget.max_usd,
        kind=frozen.kind,
    )
    if engine.pool is not None and request.given.changes_of is not None:
        raise MassgenError("invalid_arguments", "changes_of works only on the machine that has the files")
    if (added := engine.store.queue.find_reusable(run, request.given.on_conflict)) is not None:
        return added, SessionHistory()
    engine.store.index.find_known([])  # a store that cannot be reached says so before there are files of the run
    with engine.files.making():
        while True:
            try:
                history, over = sessions.history(request.given.session_id)
                turn = replace(frozen, history=history.turns)
                turn = with_earlier_changes(turn, request, sessions.ended(request.given.session_id))
                history = replace(history, begins_with=turn.begins_with)
                files = engine.files.create(run.run_id, turn, request.redactor, run)
                if request.given.uploads:
                    upload_base(files, request.config)
                engine.files.publish(run.run_id)
                added = engine.store.queue.add(
                    replace(run, turns_over=over),
                    on_conflict=request.given.on_conflict,
                    max_queued=engine.home.limits.queued,
                )
            except SessionMoved:
                engine.files.discard(run.run_id)
            except BaseException as error:
                if not _may_be_stored(engine.files, run.run_id, error):
                    with suppress(OSError):  # the next pruning tries again
                        engine.files.discard(run.run_id)
                raise
            else:
                break
    if added.reused:
        engine.files.discard(run.run_id)
    return added, history


def _may_be_stored(files: FileStore, run_id: str, error: BaseException) -> bool:
    """Whether a run that could not be added may turn out to have been: a write that the storage did not confirm can
    still be there later. If it is not, pruning finds a directory that no run has.
    """
    return storage_fault(error) is not None and files.created(run_id)


def _hash(request: "RunRequest") -> str:
    parts = [request.question, request.config.model_dump(mode="json"), request.given.session_id]
    document = json.dumps([*parts, *filter(None, [request.given.changes_of])], sort_keys=True)
    return hashlib.sha256(document.encode()).hexdigest()


class Dispatch:
    """For the runs of one engine, with the keys of one environment."""

    def __init__(self, engine: Engine, environ: Mapping[str, str]) -> None:
        self._engine = engine
        self._store, self._files, self._liveness = engine.store, engine.files, engine.liveness
        self._environ = environ

    def identity(self, config: Config) -> str:
        """The fingerprint of the credentials that this environment has for the config, or who has them."""
        return self._engine.pool or identity(config, self._environ, self._engine.home)

    def care_for(self, view: RunView) -> None:
        """Start a runner if the run needs one and has none."""
        state = view.row.state
        if state == "interrupted" or (state == "queued" and not self._liveness.runner_alive(view.row.fingerprint)):
            self.see_to(view)

    def see_to(self, view: RunView) -> None:
        """Wake the run's runner; if there is none, start one, provided that this process has the same credentials. The
        server that started the run may have died before it did so.
        """
        if view.newer or view.row.foreground or view.row.moved or view.row.state in TERMINAL_STATES:
            return  # nobody may work on it here, or the process that asked does
        if self._liveness.wake(view.row.fingerprint):
            return
        try:
            config = view.directory.read_request().config
        except JournalNewer:
            self._store.leases.park_until_upgrade(view.row.run_id)
            return
        if self.identity(config) == view.row.fingerprint:
            self._liveness.ensure_runner(view.row.fingerprint, self._environ)

    def adopt(self, view: RunView, accepted: str | None = None) -> None:
        """Let a runner with the keys of this environment continue an interrupted run. `accepted`: the digest of what a
        person accepted of one that waits for consent. Raises `MassgenError`.
        """
        config = view.directory.read_request().config
        demands = read_demands(self._engine, view.row.run_id, self._environ)
        if demands is not None:
            require_consent(view.row.run_id, demands, accepted)
        if self._engine.pool is None:
            require_keys(config, self._environ)
        if demands is not None:
            self._accept(view.row.run_id)
        self._store.queue.adopt(view.row.run_id, self.identity(config))
        self._liveness.ensure_runner(self.identity(config), self._environ)

    def _accept(self, run_id: str) -> None:
        """Let the runs that are nested in it have credentials, too."""
        for row in self._store.index.get_family(run_id):
            if row.fingerprint == WAITING:
                config = self._files.of(row).read_request().config
                self._store.queue.accept(row.run_id, self.identity(config))

    def held_up(self, row: RunRow) -> str | None:
        """Why this process cannot have a run that waits for a runner executed; None if it can."""
        if row.moved:
            return row.moved
        if row.fingerprint == WAITING:
            return (
                f"it was imported, and you haven't accepted its permissions: `massgen resume {row.run_id}` shows them"
            )
        if self._engine.pool is not None:
            alive = self._liveness.runner_alive(row.fingerprint)
            return None if alive else f"{NO_WORKER} in the pool {row.fingerprint}; start a worker: massgen worker"
        config = self._files.of(row).read_request().config
        if refused := refused_keys(config, self._environ):
            return describe_refusal(refused)
        if missing := missing_keys(config, self._environ):
            return f"this environment lacks {', '.join(missing)}"
        if row.foreground:
            return f"it ran in a program that has ended; {_RESUME} continues it in the background"
        if self.identity(config) != row.fingerprint:
            return f"it was started with keys other than those set here; {_RESUME} uses the keys set here"
        return None


# ---------------------------------------------------------------------------------------------------------------------
# What a program may start that works inside a run, such as our MCP server there: as much as an agent of that run.
# Only an estimate of what is left: whoever executes the outer run decides, and admits the new run or refuses it.


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
        message = f"cannot read run {run_id[:80]} ({PARENT_VARIABLE}), which started this process: {error}"
        raise MassgenError("nesting_refused", message) from error


def frozen_request(request: "RunRequest", outer: RunView | None, environ: Mapping[str, str]) -> FrozenRequest:
    """The request as it is executed, inside `outer` if there is one; without its session's turns. Raises `MassgenError`
    nesting_refused, saying which limit is reached, config_invalid.
    """
    if outer is None:
        bounded, kind = request.config.budget.bounds_prices, request.given.kind
        return FrozenRequest(request.question, request.config, bounded=bounded, kind=kind)
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


def ask_to_admit(engine: Engine, environ: Mapping[str, str], outer: RunView, run_id: str) -> None:
    """Have whoever executes the outer run set aside what this one may spend, and let it begin. Safe to repeat."""
    engine.store.controls.request(outer.row.run_id, "admit", run_id)
    Dispatch(engine, environ).see_to(outer)
    engine.liveness.announce(outer.row, outer.directory)
