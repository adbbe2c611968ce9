"""What it takes to bring a patch into a person's directories as they are now: a three-way merge, what is in its way.

A plan changes nothing. It is clean, or it names the files for which it cannot be carried out, and then none of it is.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from massgen_mcp.changes.base import BaseDirectory, path_text
from massgen_mcp.changes.differences import FileChange
from massgen_mcp.changes.held_directory import HeldDirectory
from massgen_mcp.changes.obstacles import Obstacle, obstacles
from massgen_mcp.changes.repository import PrivateRepository, TreeId
from massgen_mcp.changes.steps import Step, steps_between
from massgen_mcp.changes.transaction import Part, planned
from massgen_mcp.changes.user_repository import UserRepository
from massgen_mcp.errors import MassgenError

READ_ONLY = "the run was given this directory to read only (permission write allows it)"
_CONFLICTS = {
    "content": "you and the run changed the same lines",
    "add/add": "you and the run added different files of this name",
    "modify/delete": "one of you and the run changed it, the other deleted it",
    "binary": "you and the run changed this binary file",
    "rename/delete": "one of you and the run renamed it, the other deleted it",
    "rename/rename": "you and the run gave it different names",
    "file/directory": "one of you and the run made a file of it, the other a directory",
    "distinct types": "one of you and the run made a file of it, the other a link",
}


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
    """The writable places with the changes that were chosen. `left_out`: changed files of other places."""

    base: TreeId
    theirs: TreeId
    left_out: tuple[bytes, ...]
    refused: tuple[Obstacle, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """`before`: the writable places without the patch, `after`: with it, `changes`: what differs. Paths begin with the
    name of the place. `left_out`: files that the patch changes in places that are not writable.
    """

    before: TreeId
    after: TreeId
    changes: tuple[FileChange, ...] = ()
    refused: tuple[Obstacle, ...] = ()
    left_out: tuple[bytes, ...] = ()


def choose(repository: PrivateRepository, patch: Patch, paths: Sequence[str]) -> Chosen:
    """The changes of a patch at or below `paths`, which are named as in replies or absolute; without any: all of it.

    Raises `MassgenError` invalid_action for a patch that nothing may be applied of, invalid_arguments for a path at
    which it changes nothing.
    """
    if not patch.writable:
        told = "the run was given no directory with permission write, so nothing of it may be applied"
        raise MassgenError("invalid_action", told)
    changes = _at(repository.changes(patch.base, patch.theirs), patch.places, paths)
    base = repository.combined({place.name: repository.part(patch.base, place.name) for place in patch.writable})
    files = repository.files(base)
    names = {os.fsencode(place.name) for place in patch.writable}
    left_out = tuple(change.path for change in changes if change.path.split(b"/")[0] not in names)
    for change in changes:
        if change.path not in left_out:
            files.pop(change.earlier_path or change.path, None)
            if change.after is not None:
                files[change.path] = change.after
    refused = tuple(Obstacle(os.fsdecode(path), READ_ONLY) for path in left_out) if paths else ()
    return Chosen(base, repository.tree_of(files), left_out, refused)


def merged(repository: PrivateRepository, before: TreeId, chosen: Chosen) -> Plan:
    """The chosen changes on top of `before`, or the conflicts. Raises `GitFailed`."""
    found = repository.merge(chosen.base, before, chosen.theirs)
    refused = chosen.refused + tuple(Obstacle(os.fsdecode(one.path), _why(one.reason)) for one in found.conflicts)
    if refused:
        return Plan(before, before, (), refused, chosen.left_out)
    return Plan(before, found.tree, repository.changes(before, found.tree), (), chosen.left_out)


def plan(
    repository: PrivateRepository,
    patch: Patch,
    *,
    paths: Sequence[str] = (),
    permissions: Mapping[str, int] | None = None,
) -> tuple[Plan, tuple[Part, ...]]:
    """What is to be done in the directories themselves; nothing if anything is in the way. `permissions`: of files that
    are made again. Raises as `choose`, and `GitFailed`, `TooLarge`, `OSError`.
    """
    if gone := [place for place in patch.writable if not _is_there(Path(place.path))]:
        refused = tuple(Obstacle(place.name, f"{place.path} is not there any more, or no directory") for place in gone)
        return Plan(patch.base, patch.base, refused=refused), ()
    chosen = choose(repository, patch, paths)
    made = merged(
        repository, repository.combined({one.name: _present(repository, one, patch) for one in patch.writable}), chosen
    )
    parts: list[Part] = []
    in_the_way: list[Obstacle] = list(made.refused)
    for place in patch.writable:
        now, then = (repository.files(repository.part(tree, place.name)) for tree in (made.before, made.after))
        steps = [_with_permissions(step, place.name, permissions or {}) for step in steps_between(now, then)]
        if not steps:
            continue
        with HeldDirectory.open(Path(place.path)) as held, repository.reading() as contents:
            found = obstacles(held, steps, contents, _absent(Path(place.path)))
        in_the_way += [replace(one, path=f"{place.name}/{one.path}") for one in found]
        if not in_the_way:
            parts.append(planned(place.name, Path(place.path), steps))
    return replace(made, refused=tuple(in_the_way)), () if in_the_way else tuple(parts)


def _is_there(place: Path) -> bool:
    return place.is_dir() and not place.is_symlink()


def _present(repository: PrivateRepository, place: BaseDirectory, patch: Patch) -> TreeId:
    """The files of a place as they are now."""
    root = Path(place.path)
    like = [repository.part(tree, place.name) for tree in (patch.base, patch.theirs)]
    return repository.write_tree(root, like=like, ignore=place.rules, above=root.parts).tree


def _absent(place: Path) -> set[str]:
    """What a sparse checkout leaves out there."""
    around = UserRepository.around(place)
    return set(map(os.fsdecode, around.tracked(place).absent)) if around is not None else set()


def _at(changes: Sequence[FileChange], places: Sequence[BaseDirectory], paths: Sequence[str]) -> list[FileChange]:
    if not paths:
        return list(changes)
    chosen: dict[bytes, FileChange] = {}
    for path in paths:
        wanted = _named(path, places)
        found = [one for one in changes if _is_at(one.path, wanted) or _is_at(one.earlier_path, wanted)]
        if not found:
            changed = ", ".join(path_text(one.path) for one in changes[:10])
            raise MassgenError("invalid_arguments", f"the run changed nothing at {path[:200]!r}; it changed: {changed}")
        chosen |= {one.path: one for one in found}
    return list(chosen.values())


def _named(path: str, places: Sequence[BaseDirectory]) -> bytes:
    """A path as trees name it."""
    for place in places:
        if Path(path).is_relative_to(place.path):
            return os.fsencode(Path(place.name) / Path(path).relative_to(place.path))
    return os.fsencode(os.path.normpath(path))


def _is_at(path: bytes | None, wanted: bytes) -> bool:
    return path is not None and (path == wanted or path.startswith(wanted + b"/"))


def _with_permissions(step: Step, name: str, permissions: Mapping[str, int]) -> Step:
    return replace(step, permissions=permissions.get(f"{name}/{step.path}"))


def _why(reason: str) -> str:
    return _CONFLICTS.get(reason, f"what you and the run changed cannot be merged ({reason})")
