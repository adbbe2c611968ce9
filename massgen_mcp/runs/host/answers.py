"""Where a run keeps its answers: each with a snapshot of its workspace, and with its patch where the run has a base."""

import shutil
from pathlib import Path

from massgen_mcp.changes.git import GitFailed
from massgen_mcp.changes.patch_parts import beginnings
from massgen_mcp.changes.run_changes import PATCH
from massgen_mcp.events.parts import Changes
from massgen_mcp.home import write_durably
from massgen_mcp.orchestration.live_run import StoredAnswer
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.engine.files import timestamp
from massgen_mcp.runs.host.working_copies import WorkingCopies
from massgen_mcp.threads import in_thread
from massgen_mcp.workspace.directory import Workspace
from massgen_mcp.workspace.snapshot import remove_tree, take_snapshot


class AnswerGallery:
    """Keeps each accepted answer as `turn_1/attempt_<k>/<agent>/<timestamp>/answer.txt` with its workspace snapshot. Of
    the copies of the caller's directories that holds the changed files, and the patch.
    """

    def __init__(self, run: RunFiles, copies: WorkingCopies | None = None) -> None:
        self._run = run
        self._copies = copies

    def files(self, path: str) -> Path | None:
        directory = self._run.path / path / "workspace"
        return directory if directory.is_dir() else None

    def patch(self, changes: Changes, most: int) -> str:
        if changes.patch is None:
            return ""
        return beginnings(self._run.path / changes.patch, most).decode(errors="replace")

    async def keep_patch(self, agent: str, workspace: Workspace | None) -> Changes | None:
        if self._copies is None or workspace is None:
            return (
                None  # at once: the run may end while a thread works, and whoever is dropped has to be in its journal
            )
        return await self._keep_patch(self._copies, agent)

    @in_thread
    def _keep_patch(self, copies: WorkingCopies, agent: str) -> Changes:
        directory = self._run.final_of(agent)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return copies.write_patch(copies.changes(agent), directory / PATCH)

    async def restore(self, agent: str, changes: Changes) -> None:
        if self._copies is not None:
            await in_thread(self._copies.restore)(agent, changes)

    @in_thread
    def keep_final(
        self, agent: str, content: str, workspace: Workspace | None, changes: Changes | None
    ) -> Changes | None:
        directory = self._run.final_of(agent)
        remove_tree(directory)  # of a runner that was lost before it could say that the run is over
        self._run.write_final(agent, content)
        if changes is not None and self._copies is not None:
            changes = self._copies.write_patch(changes, directory / PATCH)
        if workspace is not None:
            self._take_snapshot(workspace, directory / "workspace", changes)
        return changes

    @in_thread
    def keep(self, attempt: int, agent: str, content: str, workspace: Workspace | None) -> StoredAnswer:
        parent = self._run.attempt_of(attempt) / agent
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory = _new_directory(parent)
        write_durably(directory / "answer.txt", content.encode("utf-8", "replace"))
        changes = None
        if self._copies is not None and workspace is not None:
            try:
                changes = self._copies.changes(agent)
            except (GitFailed, OSError) as failed:  # the answer stands, with no files, and says why
                why = failed.strerror if isinstance(failed, OSError) else failed
                changes = Changes(tree=self._copies.base.tree, notes=(f"cannot read the changes: {why}",))
            changes = self._copies.write_patch(changes, directory / PATCH)
        if workspace is not None:
            self._take_snapshot(workspace, directory / "workspace", changes, with_patch=True)
        return StoredAnswer(directory.relative_to(self._run.path).as_posix(), changes)

    def _take_snapshot(
        self, workspace: Workspace, target: Path, changes: Changes | None, *, with_patch: bool = False
    ) -> None:
        """Of the copies it has what is changed, and, for its readers, the patch."""
        copies = self._copies
        if copies is None or changes is None:
            take_snapshot(workspace.root, target)
            return

        def fill(partial: Path) -> None:
            copies.lay_out_changed(changes, partial)
            if with_patch and changes.patch is not None:
                shutil.copyfile(self._run.path / changes.patch, partial / PATCH)

        take_snapshot(workspace.root, target, without=(*copies.names, PATCH), fill=fill)


def _new_directory(parent: Path) -> Path:
    while True:
        directory = parent / timestamp()
        try:
            directory.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return directory
