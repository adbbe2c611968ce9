"""What came of an apply; in words what was found half-done before it and changed by others meanwhile, and how a person
brings in what `apply` refuses, because the run was given the directory to read only.
"""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from massgen_mcp.changes.base import path_text
from massgen_mcp.changes.obstacles import Obstacle
from massgen_mcp.changes.repository import FileChange, TreeId
from massgen_mcp.changes.transaction import Settled
from massgen_mcp.events.parts import ChangedFile, Changes
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.plain_text import preview

MAX_LISTED = 500
"""Paths of one kind in a record."""
MAX_SETTLED = 3
MAX_KEPT = 5
PATH_CHARACTERS = 200
"""Of what was found half-done so much is told."""

ApplyState = Literal["clean", "conflicts", "applied", "undone", "unchanged"]
"""`clean`: it could be done (a dry run); `conflicts`: nothing was done; `unchanged`: there is nothing to do."""


@dataclass(frozen=True, slots=True)
class Application:
    """What came of it. `changes`: what is done, or would be. `refused`: why nothing was. `left_out`: what else the
    patch changes, and why it was not brought in. `before` and `after`: trees of the directories
    without the changes and with them. `settled`: what was found half-done before, `unsettled`: why some of that still
    is. `kept`: where files lie that others have changed while they were replaced.
    """

    state: ApplyState
    changes: tuple[FileChange, ...] = ()
    refused: tuple[Obstacle, ...] = ()
    left_out: tuple[Obstacle, ...] = ()
    before: TreeId | None = None
    after: TreeId | None = None
    branch: str | None = None
    commit: str | None = None
    settled: tuple[Settled, ...] = ()
    unsettled: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    checks: str = ""
    """How the final checks of the run stand, in words; empty where there was nothing to check."""

    @property
    def note(self) -> str | None:
        """What was found half-done, and what became of it, and what others have changed meanwhile, in words."""
        changed = (
            f"Other programs changed files during the apply; their versions are in {_paths_text(self.kept)}."
            if self.kept
            else ""
        )
        return " ".join(filter(None, (note_on(self.settled, self.unsettled), changed))) or None


def application_fields(application: Application, why: str = "") -> dict[str, Any]:
    """Build what programs read of it: `{status, files, conflicts, left_out, note}`, the last two where there is any.
    `why`: the reason for which nothing was applied, as a sentence.
    """
    fields: dict[str, Any] = {
        "status": application.state,
        "files": [path_text(change.path) for change in application.changes[:MAX_LISTED]],
        "conflicts": _list_refused(application.refused),
    }
    if application.left_out:
        fields["left_out"] = _list_refused(application.left_out)
    if notes := [*filter(None, (application.note, why))]:
        fields["note"] = " ".join(notes)
    return fields


def _list_refused(refused: Sequence[Obstacle]) -> list[dict[str, str]]:
    return [{"path": path_text(os.fsencode(one.path)), "reason": one.reason} for one in refused[:MAX_LISTED]]


def note_on(settled: Sequence[Settled], unsettled: Sequence[str]) -> str | None:
    """What was found half-done, and what became of it; None if nothing was."""
    notes = [
        f"massgen couldn't finish or undo an earlier apply: {preview(why, 2 * PATH_CHARACTERS)}."
        for why in unsettled[:MAX_SETTLED]
    ]
    if len(unsettled) > MAX_SETTLED:
        notes.append(f"Neither could {len(unsettled) - MAX_SETTLED} more.")
    for one in settled[:MAX_SETTLED]:
        what = "after its last change; massgen has cleaned up" if one.happened else "midway; massgen has undone it"
        if one.lost:
            what = "and can't be undone yet, because its backup files have moved; the next apply will retry the undo"
        notes.append(f"An earlier apply of {one.intent.facts['run_id']} was interrupted {what}.")
        if one.lost:
            notes.append(
                f"massgen couldn't restore these files: {_paths_text(one.lost)}; {one.file} has their earlier contents."
            )
        if one.kept:
            notes.append(f"massgen left these files as they are, since they changed later: {_paths_text(one.kept)}.")
    if len(settled) > MAX_SETTLED:
        notes.append(f"{len(settled) - MAX_SETTLED} more applies were interrupted; massgen handled them the same way.")
    return " ".join(notes) or None


def _paths_text(paths: Sequence[str]) -> str:
    shown = [preview(path_text(os.fsencode(path)), PATH_CHARACTERS) for path in paths[:MAX_KEPT]]
    more = f" and {len(paths) - MAX_KEPT} more" if len(paths) > MAX_KEPT else ""
    return f"{', '.join(shown)}{more}"


def patch_command(run: RunState, changes: Changes | None, directory: Path) -> str | None:
    """Of what an answer changes. None where `apply` does it, or no single command would. `directory`: the run's."""
    base = run.base
    if changes is None or changes.patch is None or base is None:
        return None
    names = {file.path.split("/")[0] for file in changes.files}
    changed = [one for one in base.directories if one.name in names]
    if len(changed) != 1 or changed[0].writable:
        return None
    return shlex.join(["git", "-C", changed[0].path, "apply", "-p2", str(directory / changes.patch)])


def changed_file(change: FileChange) -> ChangedFile:
    """Return a change as events and replies tell it."""
    return ChangedFile(
        path=path_text(change.path),
        kind=change.kind,
        added=change.added,
        removed=change.removed,
        earlier_path=None if change.earlier_path is None else path_text(change.earlier_path),
    )
