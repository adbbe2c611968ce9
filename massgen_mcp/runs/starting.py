"""Starts a run: makes its request durable, enters its row in the queue, and wakes or starts a runner for it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from massgen_mcp.config.access.key_hosts import describe_refusal
from massgen_mcp.config.loader import missing_keys, refused_keys, require_keys
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import JournalNewer, MassgenError, storage_fault
from massgen_mcp.redaction import Redactor
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.consent import WAITING, read_demands, require_consent
from massgen_mcp.runs.engine import Added, Engine, FileStore, FrozenRequest, NewRun, RunRow, SessionMoved
from massgen_mcp.runs.patches.given import upload_base
from massgen_mcp.runs.sessions.turns import SessionHistory, SessionTurns
from massgen_mcp.runs.store.credentials import identity
from massgen_mcp.runs.view.run_view import NO_WORKER, RunView

if TYPE_CHECKING:  # what reads runs needs nothing of how one is built
    from massgen_mcp.request.build import OnConflict

_RESUME = "control_run resume (`massgen resume`)"


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that may begin: its row and its request, apart from its session's turns."""

    row: NewRun
    """If the run continues an earlier turn: with the turns that had ended when the run was prepared."""
    stored: FrozenRequest
    redactor: Redactor
    """Takes the keys of the run's environment out of text."""
    on_conflict: "OnConflict"
    outer: RunView | None
    """The run that it is nested in."""
    uploaded: Config | None
    """A config with the caller's directories, where they go to another machine with the run."""
    earlier: Added | None
    """The run that has its idempotency key."""

    def take_turns(self, history: SessionHistory, over: frozenset[int]) -> tuple[NewRun, FrozenRequest]:
        """Return the row and the request with the session's turns as they are now. Raises `MassgenError` session_busy
        if the run continues an earlier turn and another turn has ended since the run was prepared.
        """
        if self.stored.begins_with is not None and over != self.row.turns_over:
            raise MassgenError("session_busy", "another turn of this session has just ended; start the run again")
        return replace(self.row, turns_over=over), replace(self.stored, history=history.turns)


def enqueue(engine: Engine, sessions: SessionTurns, run: PreparedRun) -> tuple[Added, SessionHistory]:
    """Store the run with its session's turns: first its directory, then its row, so that a run in the store is
    complete. Raises as `RunQueue.add` and `PreparedRun.take_turns`.
    """
    if run.earlier is not None:
        return run.earlier, SessionHistory()
    run_id = run.row.run_id
    engine.store.index.find_known([])  # a store that cannot be reached says so before there are files of the run
    with engine.files.making():
        while True:
            try:
                history, over = sessions.history(run.row.session_id)
                row, stored = run.take_turns(history, over)
                files = engine.files.create(run_id, stored, run.redactor, row)
                if run.uploaded is not None:
                    upload_base(files, run.uploaded)
                engine.files.publish(run_id)
                added = engine.store.queue.add(
                    row,
                    on_conflict=run.on_conflict,
                    max_queued=engine.home.limits.queued,
                )
            except SessionMoved:
                engine.files.discard(run_id)
            except BaseException as error:
                if not _may_be_stored(engine.files, run_id, error):
                    with suppress(OSError):  # the next pruning tries again
                        engine.files.discard(run_id)
                raise
            else:
                break
    if added.reused:
        engine.files.discard(run_id)
    return added, replace(history, begins_with=stored.begins_with)


def _may_be_stored(files: FileStore, run_id: str, error: BaseException) -> bool:
    """Whether a run that could not be added may turn out to have been: a write that the storage did not confirm can
    still be there later. If it is not, pruning finds a directory that no run has.
    """
    return storage_fault(error) is not None and files.created(run_id)


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


def ask_to_admit(engine: Engine, environ: Mapping[str, str], outer: RunView, run_id: str) -> None:
    """Have whoever executes the outer run set aside what this one may spend, and let it begin. Safe to repeat."""
    engine.store.controls.request(outer.row.run_id, "admit", run_id)
    Dispatch(engine, environ).see_to(outer)
    engine.liveness.announce(outer.row, outer.directory)
