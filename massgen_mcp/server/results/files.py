"""What an answer changes of the caller's files: the list of them, and the whole difference to be read in pages."""

from collections.abc import Iterator

from massgen_mcp.changes.patch_parts import marked, run_by
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import ChangedFile, Changes
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.results.reply import ResultPart

MAX_PATCH_BYTES = 8 * 1024 * 1024
"""So much of a patch is read; the file itself has all of it."""
NO_CHANGES = "No file is changed."


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
            runs_in=run_by(file.path) or run_by(file.earlier_path or ""),
        )

    def text(self) -> str:
        was = f" (was {self.was})" if self.was is not None else ""
        lines = "binary" if self.added is None else f"+{self.added} -{self.removed}"
        runs = f" (runs by itself: {self.runs_in})" if self.runs_in is not None else ""
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
        message = "has no patch: context_paths named no directory that agents could have a copy of"
        raise MassgenError("invalid_arguments", f"run {view.row.run_id} {message}")
    if changes.patch is None:
        return "\n".join([NO_CHANGES, *changes.notes])
    try:
        with (view.directory.path / changes.patch).open("rb") as file:
            data = file.read(MAX_PATCH_BYTES)
    except OSError as error:
        raise MassgenError("expired", f"the patch of run {view.row.run_id} is no longer there") from error
    text = marked(data).decode(errors="replace")
    if changes.patch_bytes > len(data):
        text += f"\n[cut here; the file {changes.patch} of the run directory has all {changes.patch_bytes:,} bytes]\n"
    return text
