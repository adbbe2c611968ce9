"""A run is begun: its request becomes durable, its row makes it known, and a runner is woken or started for it."""

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from massgen_mcp.config.access.key_hosts import describe_refusal
from massgen_mcp.config.loader import missing_keys, refused_keys, require_keys
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import JournalNewer, storage_fault
from massgen_mcp.request.run_request import RunRequest
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine import Engine, FileStore
from massgen_mcp.runs.engine.rows import Added, FrozenRequest, NewRun, RunRow, SessionMoved, new_run_id
from massgen_mcp.runs.sessions.turns import SessionHistory, SessionTurns
from massgen_mcp.runs.store.credentials import identity
from massgen_mcp.runs.view.run_view import RunView

_RESUME = "control_run resume (`massgen-mcp resume`)"


def enqueue(
    engine: Engine,
    sessions: SessionTurns,
    request: RunRequest,
    frozen: FrozenRequest,
    identity: Callable[[Config], str],
) -> tuple[Added, SessionHistory]:
    """Directory first, row last: a run that the store knows is whole. `frozen` gets its session's turns.
    Raises as `RunStore.add`.
    """
    engine.home.ensure()
    run = NewRun(
        new_run_id(),
        request.question,
        request.source,
        fingerprint=identity(frozen.config),
        request_hash=_hash(request),
        idempotency_key=request.given.idempotency_key,
        session_id=request.given.session_id,
        parent=frozen.nesting and frozen.nesting.parent,
        admitted=frozen.nesting is None,
    )
    if (added := engine.store.reusable(run, request.given.on_conflict)) is not None:
        return added, SessionHistory()
    with engine.files.making():
        while True:
            try:
                history, over = sessions.history(request.given.session_id)
                turn = replace(frozen, history=history.turns)
                engine.files.create(run.run_id, turn, request.redactor, run)
                added = engine.store.add(
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


def _hash(request: RunRequest) -> str:
    document = json.dumps(
        [request.question, request.config.model_dump(mode="json"), request.given.session_id], sort_keys=True
    )
    return hashlib.sha256(document.encode()).hexdigest()


class Dispatch:
    """For the runs of one engine, with the keys of one environment."""

    def __init__(self, engine: Engine, environ: Mapping[str, str]) -> None:
        self._engine = engine
        self._store, self._files, self._liveness = engine.store, engine.files, engine.liveness
        self._environ = environ

    def identity(self, config: Config) -> str:
        """The fingerprint of the credentials that this environment has for the config."""
        return identity(config, self._environ, self._engine.home)

    def care_for(self, view: RunView) -> None:
        """Start a runner if the run needs one and has none."""
        state = view.row.state
        if state == "interrupted" or (state == "queued" and not self._liveness.runner_alive(view.row.fingerprint)):
            self.see_to(view)

    def see_to(self, view: RunView) -> None:
        """Wake the run's runner; if there is none, start one, provided that this process has the same credentials. The
        server that started the run may have died before it did so.
        """
        if view.newer or view.row.foreground or view.row.state in TERMINAL_STATES:
            return  # nobody may work on it, or the process that asked does
        if self._liveness.wake(view.row.fingerprint):
            return
        try:
            config = view.directory.read_request().config
        except JournalNewer:
            self._store.set_aside(view.row.run_id)
            return
        if self.identity(config) == view.row.fingerprint:
            self._liveness.ensure_runner(view.row.fingerprint, self._environ)

    def adopt(self, view: RunView) -> None:
        """Let a runner with the keys of this environment continue an interrupted run. Raises `MassgenError`."""
        config = view.directory.read_request().config
        require_keys(config, self._environ)
        self._store.adopt(view.row.run_id, self.identity(config))
        self._liveness.ensure_runner(self.identity(config), self._environ)

    def held_up(self, row: RunRow) -> str | None:
        """Why this process cannot start a runner for an interrupted run."""
        config = self._files.of(row).read_request().config
        if refused := refused_keys(config, self._environ):
            return describe_refusal(refused)
        if missing := missing_keys(config, self._environ):
            return f"{', '.join(missing)} is not set here"
        if row.foreground:
            return f"the program that executed it ended; {_RESUME} lets a runner continue it"
        if self.identity(config) != row.fingerprint:
            return f"it was started with other keys than those set here; {_RESUME} takes these"
        return None
