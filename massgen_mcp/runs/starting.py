"""A run is begun: its request becomes durable, and its row makes it known."""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import storage_fault
from massgen_mcp.request.run_request import RunRequest
from massgen_mcp.runs.engine import Engine, FileStore
from massgen_mcp.runs.engine.rows import Added, FrozenRequest, NewRun, SessionMoved, new_run_id
from massgen_mcp.runs.sessions.turns import SessionHistory, SessionTurns


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
