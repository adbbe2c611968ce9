"""Undoing a change of a directory's files from wherever it stands, and what remains beside them after it.

Nothing is replaced, and nothing removed that others can still change: it is moved aside first, and moved back if it is
not what was expected.
"""

import stat
from dataclasses import dataclass

from massgen_mcp.changes.apply_records import ChangeStep, IntentPart
from massgen_mcp.changes.held_directory import HeldDirectory


@dataclass(frozen=True, slots=True)
class TakenBack:
    """Paths that are not as they were before. `kept`: others have changed them since. `lost`: what they held before is
    not where it was laid.
    """

    kept: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


def take_back(part: IntentPart, directory: HeldDirectory) -> TakenBack:
    """As if it had never begun. Safe to repeat. Nothing is touched where the files that were laid aside are gone with
    their directory: then another one may lie there, in whose place a disk belongs.
    """
    if directory.status(part.staging) is None:
        differing = tuple(step.path for step in _differing(part, directory))
        known = any(step.old is not None for step in part.steps)
        return TakenBack(lost=differing if differing or known else (part.staging,))
    for number, step in enumerate(part.steps):
        _take_out(part, directory, number, step)
    for path in reversed(part.make):
        directory.remove_directory(path)
    for number, path in enumerate(part.emptied):
        _put_back(directory, part.staged("left", number), path)
    for number, step in enumerate(part.steps):
        _put_back(directory, part.staged("old", number), step.path)
    numbers = {step.path: number for number, step in enumerate(part.steps)}
    differing = _differing(part, directory)
    lost = {step.path for step in differing if _is_lost(part, directory, numbers[step.path], step)}
    return TakenBack(tuple(step.path for step in differing if step.path not in lost), tuple(sorted(lost)))


def left_beside(part: IntentPart, directory: HeldDirectory, *, happened: bool) -> list[str]:
    """Places at which something lies that is a person's alone: it could not be put back, or, where the change has
    `happened`, is no longer what was replaced.
    """
    places = list[str]()
    for number, step in enumerate(part.steps):
        for place, known in ((part.staged("old", number), step.old), (part.staged("taken", number), None)):
            replaced = happened and known is not None and directory.holds(place, known)
            if directory.status(place) is not None and not replaced:
                places.append(place)
    left = (part.staged("left", number) for number in range(len(part.emptied)))
    return places + [place for place in left if directory.status(place) is not None and directory.entries(place)]


def _take_out(part: IntentPart, directory: HeldDirectory, number: int, step: ChangeStep) -> None:
    """Remove the new file, unless another one is there now."""
    taken = part.staged("taken", number)
    if directory.status(taken) is None:
        in_place = step.new is not None and directory.status(part.staged("new", number)) is None
        put_back = step.old is not None and directory.status(part.staged("old", number)) is None
        if step.new is None or not in_place or put_back or not directory.holds(step.path, step.new):
            return
        _put_back(directory, step.path, taken)
    if step.new is not None and directory.holds(taken, step.new):
        directory.remove(taken)
    else:
        _put_back(directory, taken, step.path)


def _put_back(directory: HeldDirectory, aside: str, path: str) -> None:
    """It stays aside where something else has come since, or the directory has gone."""
    if directory.status(aside) is None:
        return
    try:
        directory.move(aside, path)
    except (FileExistsError, FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        error.filename = path
        raise


def _differing(part: IntentPart, directory: HeldDirectory) -> list[ChangeStep]:
    """The steps whose path is not as it was before them."""
    there = [step for step in part.steps if step.old is not None and directory.holds(step.path, step.old)]
    found = [status for step in there if (status := directory.status(step.path)) is not None]
    inodes = {(status.st_dev, status.st_ino) for status in found}

    def is_absent(path: str) -> bool:
        status = directory.status(path)
        if status is None or stat.S_ISDIR(status.st_mode):
            return True
        return (status.st_dev, status.st_ino) in inodes  # by another case of its letters

    return [step for step in part.steps if step not in there and (step.old is not None or not is_absent(step.path))]


def _is_lost(part: IntentPart, directory: HeldDirectory, number: int, step: ChangeStep) -> bool:
    if step.old is None or step.new is None or directory.status(part.staged("old", number)) is not None:
        return False
    return directory.holds(step.path, step.new)
