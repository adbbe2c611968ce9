"""A run's changes, brought into the directories that the run was given, and taken back."""

from collections.abc import Sequence
from contextlib import suppress

import anyio.to_thread

from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.access import RunAccess
from massgen_mcp.runs.patches.application import Application, application_fields
from massgen_mcp.runs.patches.applying import ApplyRequest, ChangedText, RunPatch, apply_run
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.runs.view.status_file import note_application
from massgen_mcp.runs.watcher import RunWatcher
from massgen_mcp.threads import in_thread


class PatchApplier:
    """Applies changes of the runs that the current user may see."""

    def __init__(self, access: RunAccess, watcher: RunWatcher) -> None:
        self._access, self._watcher = access, watcher

    @in_thread
    def find_unapplied(self, views: Sequence[RunView]) -> frozenset[str]:
        """Return the ids of those of these runs whose changes may be applied and were not yet."""
        ended = [view.row for view in views if view.ended and not view.row.expired]
        return frozenset(row.run_id for row in ended if self._access.engine.files.awaits_apply(row))

    async def apply(self, run_id: str, request: ApplyRequest) -> Application:
        """Apply changes of a run to the directories that it was given with `write`, and keep that in its records.

        Raises `MassgenError` unknown_run, expired, not_finished, invalid_arguments, invalid_action, run_damaged,
        disk_full, store_unavailable.
        """
        view = await self._watcher.get_run(run_id)

        def apply_patch() -> Application:
            if not request.dry_run:
                self._access.engine.store.audit.note(view.row.run_id, "undo" if request.undo else "apply")
            made = apply_run(self._access.engine.home, view, request)
            if not request.dry_run and request.agent is None:
                note_application(view.directory, view.snapshot, application_fields(made))
            if made.state in ("applied", "undone") and not request.dry_run and view.directory.report.exists():
                from massgen_mcp.runs.view.reporting import write_report  # no server starts with it

                with suppress(MassgenError, OSError):  # its page says so; without one nothing is worse
                    write_report(view.directory, view.snapshot, self._access.get_files, self._access.environ)
            return made

        return await anyio.to_thread.run_sync(apply_patch)

    @in_thread
    def read_texts(self, view: RunView, planned: Application) -> list[ChangedText]:
        """Return what the files that an apply changes hold before and after; those that are no text, or too long, are
        left out. Raises `MassgenError` store_unavailable, run_damaged.
        """
        made = RunPatch.of(view.row.run_id, view.directory, view.snapshot.best_changes)
        return [] if made is None else made.texts(planned)
