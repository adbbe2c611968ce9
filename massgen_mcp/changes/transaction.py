"""Changes of a person's files that happen as a whole or not at all, whatever ends the process in the middle.

What will be done is written down first and synced (the intent). Then every new content is written beside the files, in
a directory of its own, so that a full disk is met before anything is touched. Then each old file is moved aside, each
new one moved into its place. When all are there and synced the intent is marked as done: that is the moment from which
the change has happened. Whoever finds an intent that is not done takes everything back, because its caller was never
told of a success, and taking back needs no room; one that is done is only cleaned up. A file that somebody else has
changed since is theirs: it stays as it is, and is told.
"""

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from massgen_mcp.changes.apply_records import (
    STAGED,
    ApplyPhase,
    ChangeStep,
    Intent,
    IntentPart,
    parents_of,
    read_intent,
    write_intent,
)
from massgen_mcp.changes.base import named_paths, path_text
from massgen_mcp.changes.files import EXECUTABLE, LINK, TreeFile
from massgen_mcp.changes.held_directory import HeldDirectory
from massgen_mcp.changes.taking_back import left_beside, take_back
from massgen_mcp.workspace import openat

Contents: TypeAlias = Callable[[TreeFile], bytes]
"""Reads the content of a file, or where a link leads."""
Held: TypeAlias = list[tuple[IntentPart, HeldDirectory]]
"""The parts of an intent, each with its directory."""

_UNSETTLED: dict[ApplyPhase, str] = {
    "staging": "nothing changed, but massgen couldn't remove its temporary files",
    "changing": "some files were changed, and massgen couldn't restore them",
    "done": "the files were changed, but massgen couldn't record the apply",
}
_IMMOVABLE = frozenset({errno.EXDEV, errno.EBUSY})


class ChangedMeanwhile(Exception):
    """A file is no longer what it was when the change was planned. `kept` as in `Settled`."""

    def __init__(self, path: str, kept: tuple[str, ...] = ()) -> None:
        stay = f"; massgen kept other programs' changes to these files: {_paths_text(kept)}" if kept else ""
        super().__init__(f"changed while massgen was applying the changes{stay}")
        self.path = path


class Unsettled(Exception):
    """A change could not be taken back, or not be written down. The message says which of the two, and where; the next
    one to settle it tries again. `roots`: the directories.
    """

    def __init__(self, message: str, roots: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.roots = roots


class DirectoryMissing(FileNotFoundError):
    """One of the directories is not there, or is none."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of a change that was cut off. `kept`: files that others have changed since, which stay as they are, and
    the earlier ones where they lie aside. `lost`: files that cannot be put back, as what they held before is not where
    it was laid, or directories that are not there; then it stays unsettled, and the intent in `file` says what it held.
    """

    intent: Intent
    file: Path
    kept: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def happened(self) -> bool:
        return self.intent.phase == "done"


def perform(intent: Intent, file: Path, contents: Contents, when_done: Callable[[Intent], None]) -> Settled | None:
    """Do all of it, or nothing. `file`: where the intent is kept meanwhile; nobody else uses it. `when_done` is called
    once it has happened, and again if the process ends before that is known.

    Raises `ChangedMeanwhile`, and whatever kept it from being done, such as `OSError`: nothing has changed then; and
    `Unsettled`.
    """
    write_intent(file, intent)
    try:
        with _held(intent) as held:
            _carry_out(intent, held, file, contents)
    except BaseException as error:
        settled = settle(file, when_done)
        if settled is None or not isinstance(error, Exception):
            raise
        if settled.lost:
            raise Unsettled(f"{_UNSETTLED['changing']}: {_paths_text(settled.lost)}") from error
        if settled.happened and isinstance(error, OSError):
            return settled  # it is written down by now that it has happened; a first try to do that failed
        if settled.kept and isinstance(error, ChangedMeanwhile):
            raise ChangedMeanwhile(error.path, settled.kept) from error
        if settled.kept:
            raise Unsettled(
                "massgen undid the changes, except in these files, which other programs changed in the meantime: "
                f"{_paths_text(settled.kept)}"
            ) from error
        raise
    return settle(file, when_done)


def _carry_out(intent: Intent, held: Held, file: Path, contents: Contents) -> None:
    for part, directory in held:
        _stage(part, directory, contents)
        directory.sync()
    write_intent(file, replace(intent, phase="changing"))
    for part, directory in held:
        _change(part, directory)
        directory.sync()
    write_intent(file, replace(intent, phase="done"))


def _paths_text(paths: Iterable[str]) -> str:
    return named_paths([os.fsencode(path) for path in paths])


def settle(file: Path, when_done: Callable[[Intent], None]) -> Settled | None:
    """Finish what a process left behind: take back a change that has not happened, clean up after one that has.
    None: there is nothing to settle, or nothing is changed and the directory is not there now. Safe to repeat.

    Raises `Unsettled`, `MassgenError` for an intent that cannot be read.
    """
    intent = read_intent(file)
    if intent is None:
        return None
    phase = intent.phase
    kept = list[str]()
    try:
        with _held(intent) as held:
            if phase == "changing":
                kept, lost = _taken_back(held)
                if lost:
                    return Settled(intent, file, tuple(kept), tuple(lost))
                phase = "staging"
                write_intent(file, replace(intent, phase=phase))
            if phase == "done":
                when_done(intent)
            for part, directory in held:
                for path in reversed(part.emptied if phase == "done" else ()):
                    directory.remove_directory(path)
                kept += (f"{part.root}/{place}" for place in _cleaned_up(part, directory, happened=phase == "done"))
        file.unlink()
    except DirectoryMissing as missing:
        return Settled(intent, file, lost=(missing.filename,)) if phase == "changing" else None
    except OSError as error:
        where = f": {path_text(os.fsencode(error.filename))}" if isinstance(error.filename, str) else ""
        message = f"{_UNSETTLED[phase]}; the next `massgen apply` will try again ({error.strerror}{where})"
        raise Unsettled(message, tuple(part.root for part in intent.parts)) from error
    return Settled(intent, file, tuple(sorted(kept)))


def _cleaned_up(part: IntentPart, directory: HeldDirectory, *, happened: bool) -> list[str]:
    """Remove what lies beside the files, without what is a person's alone. Returns the places of that."""
    beside = left_beside(part, directory, happened=happened)
    if not beside:
        directory.remove(part.staging)
        return []
    for kind in STAGED:
        places = [f"{part.staging}/{kind}/{name}" for name, _ in directory.entries(f"{part.staging}/{kind}")]
        for place in places:
            if place not in beside:
                directory.remove(place)
    return beside


def _taken_back(held: Held) -> tuple[list[str], list[str]]:
    """The files that others have changed since, and those that cannot be put back."""
    kept, lost = list[str](), list[str]()
    for part, directory in reversed(held):  # one may lie in another: the last is undone first
        found = take_back(part, directory)
        directory.sync()
        kept += (f"{part.root}/{path}" for path in found.kept)
        lost += (f"{part.root}/{path}" for path in found.lost)
    return kept, lost


@contextmanager
def _held(intent: Intent) -> Generator[Held]:
    with ExitStack() as opened:
        held = Held()
        for part in intent.parts:
            try:
                held.append((part, opened.enter_context(HeldDirectory.open(Path(part.root)))))
            except (FileNotFoundError, NotADirectoryError) as error:
                raise DirectoryMissing(error.errno, error.strerror, part.root) from error
        yield held


def _stage(part: IntentPart, directory: HeldDirectory, contents: Contents) -> None:
    """Every new content, beside the files, with the permissions and the owner that it shall have."""
    directory.make_private_directory(part.staging)
    with openat.closing(directory.make_file(f"{part.staging}/.gitignore", 0o600)) as fd:
        os.write(fd, b"*\n")
    for kind in STAGED:
        directory.make_private_directory(f"{part.staging}/{kind}")
    for number, step in enumerate(part.steps):
        if step.new is None:
            continue
        permissions, like = _looks(part, directory, step)
        with _naming(part, step.path):
            if step.new.mode == LINK:
                directory.make_link(part.staged("new", number), contents(step.new), like)
                continue
            with openat.closing(directory.make_file(part.staged("new", number), permissions, like)) as fd:
                _write_all(fd, contents(step.new))


def _write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def _looks(part: IntentPart, directory: HeldDirectory, step: ChangeStep) -> tuple[int, str]:
    """The permissions of the new file, and what the rest is taken from: the file that it replaces, or is renamed from,
    else the directory that it comes into.
    """
    earlier = step.path if step.old is not None else step.like
    found = directory.status(earlier) if earlier is not None else None
    if earlier is not None and found is None:
        raise _changed(part, earlier)
    if earlier is not None and found is not None and stat.S_ISREG(found.st_mode):
        like, permissions = earlier, found.st_mode & 0o777
    else:
        like = next(filter(directory.is_directory, reversed(parents_of(step.path))), ".")
        permissions = directory.permissions(like) & 0o666
    if step.permissions is not None:
        permissions = step.permissions
    executable = step.new is not None and step.new.mode == EXECUTABLE
    if executable == bool(permissions & stat.S_IXUSR):
        return permissions, like
    return (permissions | (permissions & 0o444) >> 2 if executable else permissions & 0o666), like


def _change(part: IntentPart, directory: HeldDirectory) -> None:
    removed = [(number, step) for number, step in enumerate(part.steps) if step.new is None]
    made = [(number, step) for number, step in enumerate(part.steps) if step.new is not None]
    for number, step in removed:
        _set_aside(part, directory, number, step)
    for number, path in reversed(list(enumerate(part.emptied))):
        _leave(part, directory, number, path)
    for path in part.make:
        with _meanwhile(part, path):
            directory.make_directory(path, part.making)
    for number, step in made:
        if step.old is not None:
            _set_aside(part, directory, number, step)
        with _meanwhile(part, step.path):
            directory.move(part.staged("new", number), step.path)
    for number, step in enumerate(part.steps):
        if step.old is not None and not directory.holds(part.staged("old", number), step.old):
            raise _changed(part, step.path)


def _set_aside(part: IntentPart, directory: HeldDirectory, number: int, step: ChangeStep) -> None:
    with _meanwhile(part, step.path):
        directory.move(step.path, part.staged("old", number))


def _leave(part: IntentPart, directory: HeldDirectory, number: int, path: str) -> None:
    """Set a directory aside in which nothing is left. One that cannot be moved, as that of a container's image, stays
    until all has happened.
    """
    if not directory.is_directory(path) or directory.entries(path):
        return
    try:
        with _meanwhile(part, path):
            directory.move(path, part.staged("left", number))
    except OSError as error:
        if error.errno not in _IMMOVABLE or any(step.path == path and step.new is not None for step in part.steps):
            raise
        return
    if directory.entries(part.staged("left", number)):
        raise _changed(part, path)


@contextmanager
def _meanwhile(part: IntentPart, path: str) -> Generator[None]:
    """What was there has gone, or something has come, since the change was planned."""
    try:
        with _naming(part, path):
            yield
    except (FileExistsError, FileNotFoundError, NotADirectoryError) as error:
        raise _changed(part, path) from error


@contextmanager
def _naming(part: IntentPart, path: str) -> Generator[None]:
    """An error names the person's file, not where it is laid meanwhile."""
    try:
        yield
    except OSError as error:
        error.filename = f"{part.name}/{path}"
        raise


def _changed(part: IntentPart, path: str) -> ChangedMeanwhile:
    return ChangedMeanwhile(f"{part.name}/{path}")
