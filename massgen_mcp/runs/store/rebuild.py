"""The list of runs, made again from their directories after it was lost.

Only what the store does not know is entered, so this may be repeated, and done while servers and runners work. A run
that a runner is executing is entered as interrupted; its runner takes it again and goes on with what it has.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from massgen_mcp.errors import JournalNewer, MassgenError
from massgen_mcp.run_state.state import RunState, folded
from massgen_mcp.runs.engine import Engine, LostRun, NewRun, RunFiles, RunRow
from massgen_mcp.runs.engine.files import LEFT
from massgen_mcp.runs.store.opening import LocalEngine


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """`put_away`: where the store is now that could not be read. `entered`: the runs that are known again. `waiting`:
    those of them that nobody goes on with before somebody resumes them.
    """

    put_away: Path | None
    entered: tuple[RunRow, ...]

    @property
    def waiting(self) -> list[RunRow]:
        return [row for row in self.entered if row.state == "interrupted" and row.foreground and not row.moved]


def rebuild(engine: LocalEngine) -> Rebuilt:
    """Raises `MassgenError` disk_full, store_unavailable."""
    engine.home.ensure()
    put_away = engine.store.database.put_away_broken()
    with engine.files.making():  # nothing is deleted meanwhile because it has no row
        present = {files.path.name: files for files in engine.files.begun()}
        known = engine.store.index.find_known(list(present))
        lost = [_read_lost_run(files) for run_id, files in present.items() if run_id not in known]
        entered = engine.store.moves.restore(sorted(_without_orphans(engine, lost), key=lambda one: one.created))
    for run_id in entered:  # its runner may have told of the end just before there was a row
        state = _state(present[run_id])
        if state.end is not None and engine.store.index.get(run_id).state == "interrupted":
            engine.store.leases.end(run_id, state)
        elif (left := present[run_id].path / LEFT).exists():
            engine.store.moves.move_out(run_id, left.read_text())
    rows = tuple(engine.store.index.get(run_id) for run_id in entered)
    for fingerprint in {row.fingerprint for row in rows if row.state == "interrupted"} & engine.liveness.runners():
        engine.liveness.wake(fingerprint)
    return Rebuilt(put_away, rows)


def _read_lost_run(files: RunFiles) -> LostRun:
    """Read a run from its directory. One that has not begun is entered as a run that waits to be resumed: whether its
    start was ever acknowledged stood in the list alone.
    """
    state = _state(files)
    created = state.started_at or files.path.stat().st_mtime
    try:
        run = files.read_entry()
    except MassgenError as error:
        unknown = NewRun(files.path.name, state.question or "", "", "", "")
        newer = isinstance(error, JournalNewer)
        standing = state.state if state.end else "interrupted" if newer else "failed"
        return LostRun(unknown, standing, created, state, newer=newer)
    if state.end is not None:
        return LostRun(run, state.state, created, state)
    left = (files.path / LEFT).exists()
    if run.parent is not None and not left:
        return LostRun(replace(run, admitted=state.seq > 0), "interrupted" if state.seq else "queued", created, state)
    return LostRun(run, "interrupted", created, state, alone=left or not (state.seq and run.fingerprint))


def _without_orphans(engine: Engine, lost: Sequence[LostRun]) -> Iterator[LostRun]:
    """Runs nested in one that is over are cancelled: nobody reads what they come to."""
    going_on = {one.run.run_id for one in lost if one.state == "interrupted"}
    rows = engine.store.index.list_work()
    going_on |= {row.run_id for row in rows if row.state in ("queued", "running", "interrupted")}
    for one in lost:
        orphan = one.run.parent not in (None, *going_on) and one.state in ("queued", "interrupted")
        yield replace(one, state="cancelled") if orphan else one


def _state(files: RunFiles) -> RunState:
    return folded(files.event_log.read_intact())
