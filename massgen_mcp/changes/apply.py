"""What it takes to bring a patch into a person's directories as they are now: a three-way merge, what is in its way.

A plan changes nothing. It is clean, or it names the files for which it cannot be carried out, and then none of it is.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from massgen_mcp.changes.base import BaseDirectory
from massgen_mcp.changes.choosing import Chosen, Patch, choose
from massgen_mcp.changes.differences import FileChange
from massgen_mcp.changes.held_directory import HeldDirectory
from massgen_mcp.changes.intent import IntentPart, planned
from massgen_mcp.changes.obstacles import Obstacle, obstacles
from massgen_mcp.changes.repository import PrivateRepository, TreeId
from massgen_mcp.changes.steps import ChangeStep, steps_between
from massgen_mcp.changes.user_repository import UserRepository

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
class ApplyPlan:
    """`before`: the writable places without the patch, `after`: with it, `changes`: what differs. Paths begin with the
    name of the place. `left_out`: what else the patch changes, and why it is not brought in.
    """

    before: TreeId
    after: TreeId
    changes: tuple[FileChange, ...] = ()
    refused: tuple[Obstacle, ...] = ()
    left_out: tuple[Obstacle, ...] = ()


def merged(repository: PrivateRepository, before: TreeId, chosen: Chosen) -> ApplyPlan:
    """The chosen changes on top of `before`, or the conflicts. Raises `GitFailed`."""
    found = repository.merge(chosen.base, before, chosen.theirs)
    refused = chosen.refused + tuple(Obstacle(os.fsdecode(one.path), _why(one.reason)) for one in found.conflicts)
    if refused:
        return ApplyPlan(before, before, (), refused, chosen.left_out)
    return ApplyPlan(before, found.tree, repository.changes(before, found.tree), (), chosen.left_out)


def plan(
    repository: PrivateRepository,
    patch: Patch,
    *,
    paths: Sequence[str] = (),
    everything: bool = False,
    permissions: Mapping[str, int] | None = None,
) -> tuple[ApplyPlan, tuple[IntentPart, ...]]:
    """What is to be done in the directories themselves; nothing if anything is in the way. `permissions`: of files that
    are made again. Raises as `choose`, and `GitFailed`, `TooLarge`, `OSError`.
    """
    if gone := [place for place in patch.writable if not _is_there(Path(place.path))]:
        refused = tuple(Obstacle(place.name, f"{place.path} is not there any more, or no directory") for place in gone)
        return ApplyPlan(patch.base, patch.base, refused=refused), ()
    chosen = choose(repository, patch, paths, everything=everything)
    before = repository.combined({place.name: _present(repository, place, patch) for place in patch.writable})
    found = merged(repository, before, chosen)
    parts: list[IntentPart] = []
    refused = list(found.refused)
    steps = _steps(repository, found, permissions or {})
    for place in patch.writable:
        if not (own := [_in_place(step, place) for step in steps if step.path.startswith(f"{place.name}/")]):
            continue
        with HeldDirectory.open(Path(place.path)) as held, repository.reading() as contents:
            absent = _absent(Path(place.path)) if any(step.old is None for step in own) else ()
            in_the_way = obstacles(held, own, contents, absent)
        refused += [replace(one, path=f"{place.name}/{one.path}") for one in in_the_way]
        if not refused:
            parts.append(planned(place.name, Path(place.path), own))
    return replace(found, refused=tuple(refused)), () if refused else tuple(parts)


def _steps(repository: PrivateRepository, found: ApplyPlan, permissions: Mapping[str, int]) -> list[ChangeStep]:
    """Those of all places, by the names of trees."""
    if found.before == found.after:
        return []
    steps = steps_between(repository.files(found.before), repository.files(found.after))
    earlier = {os.fsdecode(one.path): os.fsdecode(one.earlier_path) for one in found.changes if one.earlier_path}
    return [replace(step, permissions=permissions.get(step.path), like=earlier.get(step.path)) for step in steps]


def _in_place(step: ChangeStep, place: BaseDirectory) -> ChangeStep:
    """As this place calls it. A file that comes from another place is like none of this one."""
    above = f"{place.name}/"
    like = step.like.removeprefix(above) if step.like and step.like.startswith(above) else None
    return replace(step, path=step.path.removeprefix(above), like=like)


def _is_there(place: Path) -> bool:
    return place.is_dir() and not place.is_symlink()


def _present(repository: PrivateRepository, place: BaseDirectory, patch: Patch) -> TreeId:
    """The files of a place as they are now. Where letters have no case, one that only the patch knows is no other
    file than the one that it is renamed from, so those are not looked for.
    """
    root = Path(place.path)
    base = repository.part(patch.base, place.name)
    written = repository.write_tree(root, like=[base], ignore=place.rules, without=place.in_no_tree, above=root.parts)
    return written.tree


def _absent(place: Path) -> set[str]:
    """What a sparse checkout leaves out there."""
    around = UserRepository.around(place)
    return set(map(os.fsdecode, around.tracked(place).absent)) if around is not None else set()


def _why(reason: str) -> str:
    return _CONFLICTS.get(reason, f"what you and the run changed cannot be merged ({reason})")
