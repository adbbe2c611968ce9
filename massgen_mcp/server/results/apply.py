"""What an answer changes of the caller's files: the list of them, and the whole difference to be read in pages; and
`apply_result`: which of them are changed, or why none is.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from massgen_mcp.changes.base import path_text
from massgen_mcp.changes.patch_parts import marked
from massgen_mcp.changes.tool_files import find_tool
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import ChangedFile, Changes
from massgen_mcp.runs.patches.application import Application, ApplyState, changed_file
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.results.reply import MAX_BYTES, ResultPart, ToolReply, lines, name_value
from massgen_mcp.views.plain_text import preview

MAX_PATCH_BYTES = 8 * 1024 * 1024
"""So much of a patch is read; the file itself has all of it."""
NO_CHANGES = "No file was changed."


class FileLine(ResultPart):
    path: str
    """It begins with the name of the directory."""
    change: str
    """`added`, `deleted`, `modified` or `renamed`."""
    added: int | None = None
    """Lines; absent for a binary file."""
    removed: int | None = None
    """Lines."""
    was: str | None = None
    """Where a renamed file was before."""
    runs_in: str | None = None
    """The tool that runs or obeys such a file by itself."""

    @classmethod
    def of(cls, file: ChangedFile) -> "FileLine":
        return cls(
            path=file.path,
            change=file.kind,
            added=file.added,
            removed=file.removed,
            was=file.earlier_path,
            runs_in=find_tool(file.path) or find_tool(file.earlier_path or ""),
        )

    def text(self) -> str:
        was = f" (was {self.was})" if self.was is not None else ""
        lines = "binary" if self.added is None else f"+{self.added} -{self.removed}"
        runs = f" (runs automatically: {self.runs_in})" if self.runs_in is not None else ""
        return f"{self.change} {self.path}{was} {lines}{runs}"


class Files(ResultPart):
    """What an answer changes of the caller's files."""

    of_files: int
    """How many are changed in all; those listed may be fewer."""
    added: int
    """Lines, in all of them."""
    removed: int
    """Lines, in all of them."""
    listed: list[FileLine]
    """The first of them."""
    notes: list[str] | None = None
    """What could not be taken, in words."""

    def lines(self) -> Iterator[str]:
        yield f"files: {self.of_files} changed, +{self.added} -{self.removed} lines"
        yield from (line.text() for line in self.listed)
        if self.of_files > len(self.listed):
            yield f"and {self.of_files - len(self.listed)} more"
        yield from self.notes or ()


def files_of(changes: Changes | None, most: int | None) -> Files | None:
    """The first `most` of the changed files; None for all that the record names."""
    if changes is None:
        return None
    listed = [FileLine.of(file) for file in changes.files[:most]]
    notes = list(changes.notes) or None
    return Files(of_files=changes.count, added=changes.added, removed=changes.removed, listed=listed, notes=notes)


def patch_text(view: RunView, changes: Changes | None) -> str:
    """The difference, as text. Raises `MassgenError` invalid_arguments where the run has no base, expired."""
    if changes is None:
        message = "has no patch, because context_paths didn't name a directory that massgen could copy for agents"
        raise MassgenError("invalid_arguments", f"run {view.row.run_id} {message}")
    if changes.patch is None:
        return "\n".join([NO_CHANGES, *changes.notes])
    try:
        with (view.directory.path / changes.patch).open("rb") as file:
            data = file.read(MAX_PATCH_BYTES)
    except OSError as error:
        raise MassgenError("expired", f"run {view.row.run_id}'s patch no longer exists") from error
    text = marked(data).decode(errors="replace")
    if changes.patch_bytes > len(data):
        text += f"\n[cut here; all {changes.patch_bytes:,} bytes are in {changes.patch} in the run's directory]\n"
    return text


CHECKS_CHARACTERS = 500
MOST_FILES = 200
"""Of each kind in a reply."""


@dataclass(frozen=True, slots=True)
class Ways:
    """What a door calls the way to do what was only looked at, and the ways out of conflicts."""

    do_it: str = "Call again with dry_run=false to change the files."
    out: str = (
        "Merge the diff from get_result view=diff by hand, remove the files in the way, or apply only the "
        "other files with `paths`."
    )
    undo: str = "To undo this: massgen apply --undo {run_id}"


TOOL = Ways(undo="To undo this, call apply_result with undo=true and dry_run=false.")


class RefusedFile(ResultPart):
    path: str
    """The file that is not changed; `FILE#N` is a hunk of it."""
    reason: str
    """Why not."""

    def text(self) -> str:
        return f"{self.path}: {self.reason}"


class Applied(ToolReply):
    run_id: str
    """Of this run."""
    status: ApplyState
    """`clean`: could be done; `applied`: was done; `conflicts`: nothing was changed; `unchanged`: nothing to do;
    `undone`: was taken back.
    """
    checks: str | None = None
    """How the final checks stand; absent where there was nothing to check."""
    branch: str | None = None
    """The branch that the changes were put on, where a person asked for one."""
    commit: str | None = None
    """Its commit."""
    files: list[FileLine]
    """The files that are changed, each with its path, `change`, and lines `added` and `removed`."""
    more_files: int | None = None
    """How many further ones there are."""
    conflicts: list[RefusedFile] | None = None
    """The files that cannot be changed, each with its path and `reason`."""
    more_conflicts: int | None = None
    """How many further ones there are."""
    left_out: list[RefusedFile] | None = None
    """What else was changed and is not brought in, each with its path and `reason`."""
    more_left_out: int | None = None
    """How many further ones there are."""
    note: str | None = None
    """What became of an earlier apply that was cut off."""
    next_step: str
    """What to do next."""

    def text(self) -> str:
        return lines(
            f"{self.run_id}: {self.status}{f'. {self.checks}' if self.checks is not None else ''}",
            name_value("branch", self.branch),
            name_value("commit", self.commit),
            *(file.text() for file in self.files),
            name_value("more_files", self.more_files),
            *(conflict.text() for conflict in self.conflicts or ()),
            name_value("more_conflicts", self.more_conflicts),
            *(f"left out: {one.text()}" for one in self.left_out or ()),
            name_value("more_left_out", self.more_left_out),
            self.note,
            self.next_step,
        )


def applied(run_id: str, application: Application, ways: Ways = TOOL, *, most_bytes: int | None = MAX_BYTES) -> Applied:
    """In at most so many bytes, with as many files as fit; None: with all of them."""
    count = max(len(application.changes), len(application.refused), len(application.left_out))
    if most_bytes is not None:
        count = min(MOST_FILES, count)
    while True:
        reply = _applied_with(run_id, application, count, ways)
        if most_bytes is None or count == 0 or reply.size <= most_bytes:
            return reply
        count = count * 3 // 4


def _applied_with(run_id: str, application: Application, count: int, ways: Ways) -> Applied:
    """With so many files of each kind."""
    changes, refused, left_out = application.changes, application.refused, application.left_out
    return Applied(
        run_id=run_id,
        status=application.state,
        checks=preview(application.checks, CHECKS_CHARACTERS) or None,
        branch=application.branch,
        commit=application.commit,
        files=[FileLine.of(changed_file(change)) for change in changes[:count]],
        more_files=_more(changes, count),
        conflicts=[_refused_file(one.path, one.reason) for one in refused[:count]] or None,
        more_conflicts=_more(refused, count),
        left_out=[_refused_file(one.path, one.reason) for one in left_out[:count]] or None,
        more_left_out=_more(left_out, count),
        note=application.note,
        next_step=_next_step(run_id, application, ways),
    )


def _refused_file(path: str, reason: str) -> RefusedFile:
    return RefusedFile(path=path_text(os.fsencode(path)), reason=path_text(os.fsencode(reason)))


def _more(found: Sequence[object], count: int) -> int | None:
    return len(found) - count if len(found) > count else None


def _next_step(run_id: str, application: Application, ways: Ways) -> str:
    match application.state:
        case "clean":
            checks = f"{preview(application.checks, CHECKS_CHARACTERS)}. " if application.checks else ""
            return f"{checks}Nothing has been changed yet. {ways.do_it}"
        case "conflicts":
            return f"Nothing was changed. {ways.out}"
        case "applied" if application.branch is not None:
            return "massgen added only this branch to the repository. Review and test the commit, then merge it."
        case "applied":
            return f"Review and test the files. {ways.undo.format(run_id=run_id)}"
        case "undone":
            return "The changes were reverted; later edits to the files were kept."
        case "unchanged" if application.left_out:
            return "Nothing was changed; check the list of files left out."
        case "unchanged":
            return "Nothing to do: the directories are already in that state."
