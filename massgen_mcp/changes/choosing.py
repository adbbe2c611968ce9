"""Which changes of a patch are brought in: all of it, some files, or some hunks of a file.

A hunk is `PATH#N`, the Nth of its file as the patch shows it. What runs by itself in other tools is taken only by name.
"""

import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.changes.base import BaseDirectory, path_text
from massgen_mcp.changes.files import LINK, TreeFile
from massgen_mcp.changes.obstacles import Obstacle
from massgen_mcp.changes.repository import FileChange, PrivateRepository, TreeId
from massgen_mcp.changes.tool_files import find_tool
from massgen_mcp.errors import MassgenError

READ_ONLY = "the run has read-only access to this directory (to allow changes, set permission: write)"
NOT_NAMED = "you didn't include it in `paths`"
MOST_LINKS = 10
"""So many links one after the other are followed."""


@dataclass(frozen=True, slots=True)
class Patch:
    """What to bring in: the difference of two trees, which hold each of the `places` under its name."""

    places: tuple[BaseDirectory, ...]
    base: TreeId
    theirs: TreeId

    @property
    def writable(self) -> tuple[BaseDirectory, ...]:
        return tuple(place for place in self.places if place.writable)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The writable places with the changes that were chosen. `left_out`: what else the patch changes, and why not."""

    base: TreeId
    theirs: TreeId
    left_out: tuple[Obstacle, ...]
    refused: tuple[Obstacle, ...]


def choose(repository: PrivateRepository, patch: Patch, paths: Sequence[str], *, everything: bool = False) -> Chosen:
    """The changes of a patch at or below `paths`, which are named as in replies or absolute, or hunks; without any: all
    of it but what runs by itself, unless `everything` is wanted.

    Raises `MassgenError` invalid_action for a patch that nothing may be applied of, invalid_arguments for a path at
    which it changes nothing, and for a hunk that is none.
    """
    if not patch.writable:
        message = "the run had no directory with permission: write, so it has no changes to apply"
        raise MassgenError("invalid_action", message)
    changes = repository.changes(patch.base, patch.theirs)
    running = {} if everything else _self_running(repository, patch, changes)
    hunks = _named_changes(changes, patch.places, paths, running)
    base = repository.combined({place.name: repository.part(patch.base, place.name) for place in patch.writable})
    files = dict(repository.files(base))
    names = {os.fsencode(place.name) for place in patch.writable}
    left_out: list[Obstacle] = []
    refused: list[Obstacle] = []
    for change in changes:
        writable = change.path.split(b"/")[0] in names
        if not writable:
            left_out.append(Obstacle(os.fsdecode(change.path), READ_ONLY))
            if paths and change.path in hunks:
                refused.append(left_out[-1])
        elif change.path not in hunks:
            tool = running.get(change.path)
            named = (
                f"{tool} may run this file without asking; to include it, add its own path to `paths`"
                if tool
                else NOT_NAMED
            )
            left_out.append(Obstacle(os.fsdecode(change.path), named))
        else:
            after = change.after
            if numbers := hunks[change.path]:
                after, others = _with_hunks(repository, change, numbers)
                left_out += [Obstacle(f"{os.fsdecode(change.path)}#{one}", NOT_NAMED) for one in others]
            files.pop(change.earlier_path or change.path, None)
            if after is not None:
                files[change.path] = after
    return Chosen(base, repository.tree_of(files), tuple(left_out), tuple(refused))


def _named_changes(
    changes: Sequence[FileChange], places: Sequence[BaseDirectory], paths: Sequence[str], running: dict[bytes, str]
) -> dict[bytes, set[int]]:
    """The numbers of the chosen hunks of each chosen file; none: the whole file."""
    if not paths:
        return {change.path: set() for change in changes if change.path not in running}
    told = {path_text(path): path for one in changes for path in (one.earlier_path, one.path) if path is not None}
    chosen: dict[bytes, set[int]] = {}
    whole: set[bytes] = set()
    for path in paths:
        wanted = told.get(path) or named(path, places)
        found = [one for one in changes if _is_at(one.path, wanted) or _is_at(one.earlier_path, wanted)]
        file, _, number = path.rpartition("#")
        if not found and number.isascii() and number.isdecimal():
            wanted = told.get(file) or named(file, places)
            for one in (one for one in changes if wanted in (one.path, one.earlier_path)):
                found.append(one)
                chosen.setdefault(one.path, set()).add(int(number))
        else:
            by_name = find_tool(os.fsdecode(wanted), link=True) is not None
            whole |= {
                one.path
                for one in found
                if by_name or one.path not in running or wanted in (one.path, one.earlier_path)
            }
        if not found:
            changed = ", ".join(path_text(one.path) for one in changes[:10])
            raise MassgenError("invalid_arguments", f"the run changed nothing in {path[:200]!r}; it changed: {changed}")
    if both := sorted(whole & chosen.keys()):
        raise MassgenError(
            "invalid_arguments", f"you named both {path_text(both[0])} and one of its hunks; name only one of them"
        )
    return chosen | {path: set[int]() for path in whole}


def _with_hunks(
    repository: PrivateRepository, change: FileChange, numbers: set[int]
) -> tuple[TreeFile, tuple[int, ...]]:
    """The file of the base with only these hunks, and the numbers of its others."""
    before, after, path = change.before, change.after, path_text(change.path)
    plain = change.kind == "modified" and change.added is not None
    if not plain or before is None or after is None or before.mode != after.mode or before.mode == LINK:
        what = "a binary file, a link, or a file whose mode changed" if change.kind == "modified" else change.kind
        raise MassgenError(
            "invalid_arguments", f"{path} is {what}, so massgen can apply it only as a whole; name it without #N"
        )
    hunks = repository.hunks(before, after)
    for number in sorted(numbers):
        if not 1 <= number <= len(hunks):
            there = f"#1 to #{len(hunks)}" if len(hunks) > 1 else "#1"
            raise MassgenError("invalid_arguments", f"{path} has no hunk #{number}; it has {there}")
    lines, theirs = (lines_of(repository.content(file)) for file in (before, after))
    for number in sorted(numbers, reverse=True):
        hunk = hunks[number - 1]
        lines[hunk.before] = theirs[hunk.after]
    others = tuple(number for number in range(1, len(hunks) + 1) if number not in numbers)
    return (TreeFile(before.mode, repository.put(b"".join(lines))) if others else after), others


def lines_of(content: bytes) -> list[bytes]:
    """As git counts them: only a line feed ends a line."""
    *lines, rest = content.split(b"\n")
    return [*(line + b"\n" for line in lines), *([rest] if rest else [])]


def _self_running(repository: PrivateRepository, patch: Patch, changes: Sequence[FileChange]) -> dict[bytes, str]:
    """What runs each changed file by itself, whatever links lead to it."""
    links = _links(repository, patch)
    found: dict[bytes, str] = {}
    for change in changes:
        for path in filter(None, (change.path, change.earlier_path)):
            link = LINK in (file.mode for file in (change.before, change.after) if file is not None)
            names = _all_names(os.fsdecode(path), links)
            if tool := next(filter(None, (find_tool(name, link=link) for name in names)), None):
                found[change.path] = tool
    return found


def _links(repository: PrivateRepository, patch: Patch) -> dict[str, str]:
    """The links of both trees, and where each leads, by the names of trees."""
    links: dict[str, str] = {}
    with repository.reading() as contents:
        for tree in (patch.base, patch.theirs):
            for path, file in repository.files(tree).items():
                if file.mode == LINK:
                    name, target = os.fsdecode(path), os.fsdecode(contents(file))
                    inside = named(target, patch.places) if target.startswith("/") else None
                    beside = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
                    links[name] = os.fsdecode(inside) if inside is not None else beside
    return links


def _all_names(path: str, links: dict[str, str]) -> set[str]:
    """All names by which a file can be reached: its own, and those through links that lead to it or above it."""
    names = {path}
    for _ in range(MOST_LINKS):
        new = {
            f"{link}{name.removeprefix(target)}"
            for link, target in links.items()
            for name in names
            if name == target or name.startswith(f"{target}/")
        }
        if new <= names:
            break
        names |= new
    return names


def named(path: str, places: Sequence[BaseDirectory]) -> bytes:
    """A path as trees name it."""
    for place in places:
        if Path(path).is_relative_to(place.path):
            return os.fsencode(Path(place.name) / Path(path).relative_to(place.path))
    return os.fsencode(os.path.normpath(path))


def _is_at(path: bytes | None, wanted: bytes) -> bool:
    return path is not None and (path == wanted or path.startswith(wanted + b"/"))
