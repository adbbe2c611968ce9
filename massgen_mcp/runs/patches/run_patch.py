"""The patch of a run: what an answer makes of the directories that it was given."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.changes.choosing import Patch
from massgen_mcp.changes.git import GitFailed
from massgen_mcp.changes.repository import TreeId
from massgen_mcp.changes.run_changes import RunChanges
from massgen_mcp.errors import MassgenError, storage_error
from massgen_mcp.events.parts import Changes
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.patches.application import Application


@dataclass(frozen=True, slots=True)
class RunPatch:
    """What an answer of a run makes of the directories that it was given."""

    run_id: str
    changes: RunChanges
    patch: Patch

    @classmethod
    def of(cls, run_id: str, files: RunFiles, made: Changes | None) -> "RunPatch | None":
        """None if it changes nothing. Raises `MassgenError` run_damaged."""
        changes = RunChanges(files.changes)
        try:
            base = changes.base()
        except GitFailed as damage:
            raise MassgenError("run_damaged", str(damage)) from damage
        if made is None or base is None or not made.count:
            return None
        return cls(run_id, changes, Patch(base.directories, base.id, TreeId(made.tree)))

    @property
    def applicable(self) -> bool:
        """Whether any of it may be applied."""
        return bool(self.patch.writable)

    def difference(self, planned: Application, most_bytes: int) -> tuple[bytes, int]:
        """The first bytes of what an application changes, as a patch, and the size of the whole. Raises `MassgenError`
        store_unavailable, disk_full.
        """
        if planned.before is None or planned.after is None:
            return b"", 0
        try:
            with tempfile.TemporaryDirectory(prefix="shown.", dir=self.changes.directory) as directory:
                file = Path(directory) / "patch"
                size = self.changes.repository.write_patch(planned.before, planned.after, file)
                with file.open("rb") as patch:
                    return patch.read(most_bytes), size
        except GitFailed as error:
            raise MassgenError("store_unavailable", f"the changes cannot be shown: {error}") from error
        except OSError as error:
            raise storage_error("the changes cannot be shown", error) from error
