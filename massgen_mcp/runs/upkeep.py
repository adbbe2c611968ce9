"""Old runs are deleted, and runs move between stores."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.access import AccessPart
from massgen_mcp.runs.consent import RunDemands
from massgen_mcp.runs.moving import MovedIn, MovedOut, move_in, move_out
from massgen_mcp.runs.store.retention import Pruned, prune, prune_named
from massgen_mcp.threads import in_thread, run_in_stoppable_thread


class RunUpkeep(AccessPart):
    """Deletes, exports and imports the runs that the current user may see."""

    async def move_out(self, run_id: str, target: Path) -> MovedOut:
        """Do what `runs.moving.move_out` does; a caller that is cancelled before the file is complete keeps the run
        here.
        """
        return await run_in_stoppable_thread(
            partial(move_out, self._access.engine, self._access.get_watch, run_id, target)
        )

    @in_thread
    def import_run(
        self,
        file: Path,
        owner: str | None,
        accepts: Callable[[RunDemands], bool],
        *,
        back: bool = False,
        is_only_import: bool = False,
    ) -> MovedIn:
        """Do what `runs.moving.move_in` does; a run that may go on here does so."""
        moved = move_in(
            self._access.engine,
            self._access.dispatch,
            self._access.environ,
            file,
            owner,
            back=back,
            is_only_import=is_only_import,
            accepts=accepts,
        )
        if moved.state not in TERMINAL_STATES:
            self._access.dispatch.care_for(self._access.get_watch(moved.run_id).look())
        return moved

    @in_thread
    def prune(self, *, dry_run: bool = False, older_than: float | None = None) -> Pruned:
        """Delete workspaces and results that are older than the limits (see `retention.prune`)."""
        self._access.engine.home.ensure()
        return prune(self._access.whole_engine, dry_run=dry_run, older_than=older_than)

    @in_thread
    def prune_named(self, run_ids: Sequence[str], *, dry_run: bool = False) -> Pruned:
        """Delete everything of these runs (see `retention.prune_named`). Raises `MassgenError` unknown_run."""
        rows = [self._access.get_watch(run_id).row() for run_id in run_ids]
        return prune_named(self._access.engine, rows, dry_run=dry_run)
