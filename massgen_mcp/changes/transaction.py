"""Changes of a person's files that happen as a whole or not at all, whatever ends the process in the middle.

What will be done is written down first and synced (the intent). Then every new content is written beside the files, in
a directory of its own, so that a full disk is met before anything is touched. Then each old file is moved aside, each
new one moved into its place. When all are there and synced the intent is marked as done: that is the moment from which
the change has happened. Whoever finds an intent that is not done takes everything back, because its caller was never
told of a success, and taking back needs no room; one that is done is only cleaned up. A file that somebody else has
changed since is theirs: it stays as it is, and is told.
"""

import os
import stat
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from massgen_mcp.changes.files import EXECUTABLE, LINK, TreeFile
from massgen_mcp.changes.held_directory import HeldDirectory
from massgen_mcp.changes.intent import Intent, Part, read_intent, write_intent
from massgen_mcp.changes.steps import Step, parents_of
from massgen_mcp.workspace import openat

Contents: TypeAlias = Callable[[TreeFile], bytes]
"""Reads the content of a file, or where a link leads."""


class ChangedMeanwhile(Exception):
    """A file is no longer what it was when the change was planned."""

    def __init__(self, part: Part, path: str) -> None:
        super().__init__("changed while this was being applied")
        self.path = f"{part.name}/{path}"


class Unsettled(Exception):
    """The operating system kept a change from being taken back, or from being written down. The message says which of
    the two; the next one to settle it tries again.
    """


class DirectoryMissing(FileNotFoundError):
    """One of the directories is not there, or is none."""


def perform(intent: Intent, file: Path, contents: Contents, when_done: Callable[[Intent], None]) -> None:
    """Do all of it, or nothing. `file`: where the intent is kept meanwhile; nobody else uses it. `when_done` is called
    once it has happened, and again if the process ends before that is known.

    Raises `ChangedMeanwhile`, and whatever kept it from being done, such as `OSError`: nothing has changed then; and
    `Unsettled`.
    """
    write_intent(file, intent)
    try:
        with _held(intent) as held:
            for part, directory in held:
                _stage(part, directory, contents)
                directory.sync()
            write_intent(file, replace(intent, phase="changing"))
            for part, directory in held:
                _change(part, directory)
                directory.sync()
            write_intent(file, replace(intent, phase="done"))
    finally:
        try:
            settle(file, when_done)
        except OSError as error:
            raise Unsettled(f"{_half_done(file)} ({error.strerror}: {error.filename})") from error


def _half_done(file: Path) -> str:
    left = read_intent(file)
    if left is not None and left.phase == "done":
        return "the files are changed, but that could not be written down; the next apply does it"
    return "the files are half changed and could not be put back; the next apply tries again"


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of a change that was cut off. `kept`: files that others have changed since, which stay as they are, and
    the earlier ones where they lie aside.
    """

    intent: Intent
    kept: tuple[str, ...] = ()

    @property
    def happened(self) -> bool:
        return self.intent.phase == "done"


def settle(file: Path, when_done: Callable[[Intent], None]) -> Settled | None:
    """Finish what a process left behind: take back a change that has not happened, clean up after one that has.
    None: there is nothing to settle, or one of its directories is not there now. Safe to repeat.

    Raises `OSError` if it cannot be settled now, `MassgenError` for an intent that cannot be read.
    """
    intent = read_intent(file)
    if intent is None:
        return None
    kept = list[str]()
    try:
        with _held(intent) as held:
            if intent.phase == "changing":
                for part, directory in reversed(held):  # one may lie in another: the last is undone first
                    kept += [f"{part.root}/{path}" for path in _take_back(part, directory)]
                    directory.sync()
                with suppress(OSError):  # it is only better to have it: what is left is to remove what lies beside
                    write_intent(file, replace(intent, phase="staging"))
            if intent.phase == "done":
                when_done(intent)
            for part, directory in held:
                if intent.phase == "changing" and (aside := _left_aside(part, directory)):
                    kept += [f"{part.root}/{place}" for place in aside]
                else:
                    directory.remove(part.staging)
    except DirectoryMissing:
        return None
    file.unlink()
    return Settled(intent, tuple(sorted(kept)))


@contextmanager
def _held(intent: Intent) -> Generator[list[tuple[Part, HeldDirectory]]]:
    with ExitStack() as opened:
        held = list[tuple[Part, HeldDirectory]]()
        for part in intent.parts:
            try:
                held.append((part, opened.enter_context(HeldDirectory.open(Path(part.root)))))
            except (FileNotFoundError, NotADirectoryError) as error:
                raise DirectoryMissing(error.errno, error.strerror, part.root) from error
        yield held


def _stage(part: Part, directory: HeldDirectory, contents: Contents) -> None:
    """Every new content, beside the files, with the permissions and the owner that it shall have."""
    directory.make_private_directory(part.staging)
    with openat.closing(directory.make_file(f"{part.staging}/.gitignore", 0o600)) as fd:
        os.write(fd, b"*\n")
    for name in ("old", "new"):
        directory.make_private_directory(f"{part.staging}/{name}")
    for number, step in enumerate(part.steps):
        if step.new is None:
            continue
        place = f"{part.staging}/new/{number}"
        if step.new.mode == LINK:
            directory.make_link(place, contents(step.new))
            continue
        permissions, like = _looks(part, directory, step)
        with openat.closing(directory.make_file(place, permissions, like)) as fd:
            _write_all(fd, contents(step.new))


def _write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def _looks(part: Part, directory: HeldDirectory, step: Step) -> tuple[int, os.stat_result]:
    """The permissions of the new file, and what its owner is taken from: the file that it replaces, else the directory
    that it comes into.
    """
    found = directory.status(step.path) if step.old is not None else None
    if step.old is not None and found is None:
        raise ChangedMeanwhile(part, step.path)
    if found is not None and stat.S_ISREG(found.st_mode):
        permissions = found.st_mode & 0o777
    else:
        found = next(filter(None, map(directory.status, [*reversed(parents_of(step.path)), "."])))
        permissions = found.st_mode & 0o666
    if step.permissions is not None:
        permissions = step.permissions
    executable = step.new is not None and step.new.mode == EXECUTABLE
    if executable == bool(permissions & stat.S_IXUSR):
        return permissions, found
    return (permissions | (permissions & 0o444) >> 2 if executable else permissions & 0o666), found


def _change(part: Part, directory: HeldDirectory) -> None:
    removed = [(number, step) for number, step in enumerate(part.steps) if step.new is None]
    made = [(number, step) for number, step in enumerate(part.steps) if step.new is not None]
    for number, step in removed:
        _set_aside(part, directory, number, step)
    for path, _ in reversed(part.emptied):
        directory.remove_directory(path)
    for path in part.make:
        with _meanwhile(part, path):
            directory.make_directory(path, directory.permissions(path.rpartition("/")[0] or "."), part.making)
    for number, step in made:
        if step.old is not None:
            _set_aside(part, directory, number, step)
        with _meanwhile(part, step.path):
            directory.move(f"{part.staging}/new/{number}", step.path)
    for number, step in enumerate(part.steps):
        if step.old is not None and not directory.holds(f"{part.staging}/old/{number}", step.old):
            raise ChangedMeanwhile(part, step.path)


def _set_aside(part: Part, directory: HeldDirectory, number: int, step: Step) -> None:
    with _meanwhile(part, step.path):
        directory.move(step.path, f"{part.staging}/old/{number}")


@contextmanager
def _meanwhile(part: Part, path: str) -> Generator[None]:
    """What was there has gone, or something has come, since the change was planned."""
    try:
        yield
    except (FileExistsError, FileNotFoundError, NotADirectoryError) as error:
        raise ChangedMeanwhile(part, path) from error


def _take_back(part: Part, directory: HeldDirectory) -> list[str]:
    """As if it had never begun, from wherever it stands; returns the paths that others have changed since."""
    if directory.status(part.staging) is None:
        return []
    kept = {step.path for number, step in enumerate(part.steps) if not _taken_out(part, directory, number, step)}
    for path in reversed(part.make):
        directory.remove_directory(path)
    for number, step in enumerate(part.steps):
        if step.path not in kept and not _put_back(part, directory, number, step):
            kept.add(step.path)
    return sorted(kept)


def _left_aside(part: Part, directory: HeldDirectory) -> list[str]:
    """Where files of the person's lie that could not be put back, because others are in their places."""
    places = [f"{part.staging}/old/{number}" for number in range(len(part.steps))]
    return [place for place in places if directory.status(place) is not None]


def _taken_out(part: Part, directory: HeldDirectory, number: int, step: Step) -> bool:
    """False if what was put there is not what is there now."""
    if step.new is None or directory.status(f"{part.staging}/new/{number}") is not None:
        return True
    if step.old is not None and directory.status(f"{part.staging}/old/{number}") is None:
        return True  # by somebody who was cut off in this as well
    if directory.holds(step.path, step.new):
        directory.remove(step.path)
    return directory.status(step.path) is None


def _put_back(part: Part, directory: HeldDirectory, number: int, step: Step) -> bool:
    """False if something else has come there since, or its directory has gone."""
    aside = f"{part.staging}/old/{number}"
    if directory.status(aside) is None:
        return True
    try:
        for path, permissions in part.emptied:
            if step.path.startswith(f"{path}/") and directory.status(path) is None:
                directory.make_directory(path, permissions, part.making)
        directory.move(aside, step.path)
    except (FileExistsError, FileNotFoundError, NotADirectoryError):
        return False
    return True
