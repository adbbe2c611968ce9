"""What is in the way of a step: whatever of a person's must not be replaced, followed or left behind.

Looked at before anything is changed, so that a dry run tells it, too.
"""

import os
import posixpath
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from massgen_mcp.changes.apply_records import ChangeStep, parents_of
from massgen_mcp.changes.files import LINK, MIB, USUAL_LIMITS, is_git_name
from massgen_mcp.changes.held_directory import HeldDirectory
from massgen_mcp.changes.transaction import Contents


@dataclass(frozen=True, slots=True)
class Obstacle:
    """`reason` completes "PATH: …"."""

    path: str
    reason: str


def obstacles(
    held: HeldDirectory, steps: Sequence[ChangeStep], contents: Contents, absent: Collection[str]
) -> list[Obstacle]:
    """Those in the way of these steps in this directory, at most one for each. `absent`: files that a repository keeps
    and a sparse checkout leaves out. Raises `OSError`, `GitFailed`.
    """
    looking = _Looking(held, steps, contents, absent)
    return [Obstacle(step.path, reason) for step in steps if (reason := looking.reason(step))]


class _Looking:
    def __init__(
        self, held: HeldDirectory, steps: Iterable[ChangeStep], contents: Contents, absent: Collection[str]
    ) -> None:
        self._held = held
        self._contents = contents
        self._absent = absent
        self._removed = {step.path for step in steps if step.new is None}
        found = map(held.status, self._removed)
        self._inodes = {(status.st_dev, status.st_ino) for status in found if status is not None}
        self._above: dict[str, str] = {}

    def reason(self, step: ChangeStep) -> str:
        """Empty if nothing is in the way."""
        if any(map(is_git_name, step.path.split("/"))):
            return "is one of git's own files"
        for parent in ["", *parents_of(step.path)]:
            if parent not in self._above:
                self._above[parent] = self._reason_above(parent)
            if self._above[parent]:
                return self._above[parent]
        if step.new is not None and step.new.mode == LINK and (reason := self._reason_of_link(step)):
            return reason
        if step.old is not None:
            return self._reason_not_replaced(step)
        if step.like is not None and step.new is not None and step.new.mode != LINK:
            return self._reason_not_made(step) or self._reason_not_renamed(step.like)
        return self._reason_not_made(step)

    def _reason_above(self, parent: str) -> str:
        found = self._held.status(parent or ".")
        if found is None or parent in self._removed:
            return ""
        if stat.S_ISLNK(found.st_mode):
            return f"{parent} is a symbolic link, which massgen doesn't follow"
        if not stat.S_ISDIR(found.st_mode):
            return f"{parent} isn't a directory"
        if parent and self._held.status(f"{parent}/.git") is not None:
            return f"{parent} is a nested repository"
        if not self._held.is_on_same_file_system(parent or "."):
            return f"{parent} is on another file system"
        if self._held.is_mounted(parent or "."):
            return f"{parent} is a mount point of another file system"
        if self._held.is_on_read_only_file_system(parent or "."):
            return "is on a read-only file system"
        return "" if _writable(found) else f"{parent or 'the directory'} is read-only"

    def _reason_of_link(self, step: ChangeStep) -> str:
        target = os.fsdecode(self._contents(step.new)) if step.new else ""
        leads = posixpath.normpath(posixpath.join(posixpath.dirname(step.path), target))
        return "is a link that points outside the directory" if leads.startswith(("/", "..")) else ""

    def _reason_not_replaced(self, step: ChangeStep) -> str:
        found = self._held.status(step.path)
        if found is None or stat.S_ISLNK(found.st_mode):
            return ""
        if not stat.S_ISREG(found.st_mode):
            return "isn't a regular file"
        if found.st_size > USUAL_LIMITS.file_bytes:
            return f"is larger than {USUAL_LIMITS.file_bytes // MIB} MB, so massgen didn't compare its current contents"
        if not _writable(found):
            return "is read-only"
        if self._held.is_mounted(step.path):
            return "is a mount point of another file system"
        replaced = step.new is not None and step.new.mode != LINK
        return self._held.not_kept(step.path) if replaced else ""

    def _reason_not_made(self, step: ChangeStep) -> str:
        if step.path in self._absent:
            return "the sparse checkout excludes this file"
        found = self._held.status(step.path)
        if found is None or (found.st_dev, found.st_ino) in self._inodes:  # by another case of its letters
            return ""
        if not stat.S_ISDIR(found.st_mode):
            return "already exists, but the team didn't see it (git ignores it, or it may contain secrets)"
        kept = next(self._others_below(step.path), None)
        return "" if kept is None else f"a directory with this name contains {kept}"

    def _reason_not_renamed(self, earlier: str) -> str:
        """It takes the looks of the earlier file with it, as one that is replaced gives them on."""
        found = self._held.status(earlier)
        not_kept = self._held.not_kept(earlier) if found is not None and stat.S_ISREG(found.st_mode) else ""
        return f"was {earlier}, which {not_kept}" if not_kept else ""

    def _others_below(self, path: str) -> Iterator[str]:
        """Files that are not removed, and empty directories."""
        entries = self._held.entries(path)
        if not entries:
            yield path
        for name, is_directory in entries:
            below = f"{path}/{name}"
            if is_directory:
                yield from self._others_below(below)
            elif below not in self._removed:
                yield below


def _writable(found: os.stat_result) -> bool:
    """Whether its owner may write to it at all: who protects a file means it, and the superuser could still write."""
    return bool(found.st_mode & stat.S_IWUSR)
