"""What it takes to bring a patch into a person's directories as they are now: a three-way merge, and what is in its way.

A plan changes nothing. It is clean, or it names every file for which it cannot be carried out, and then none of it is.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from massgen_mcp.changes.base import BaseDirectory
from massgen_mcp.changes.differences import FileChange
from massgen_mcp.changes.held_directory import HeldDirectory
from massgen_mcp.changes.obstacles import Obstacle, obstacles
from massgen_mcp.changes.repository import PrivateRepository, TreeId
from massgen_mcp.changes.steps import Step, steps_between
from massgen_mcp.changes.transaction import Part, planned
from massgen_mcp.errors import MassgenError

READ_ONLY = "was given to read only; start the run with permission write for it"
_CONFLICTS = {
    "content": "you and the run changed the same lines",
    "contents": "you and the run changed the same lines",
    "add/add": "you and the run added different files of this name",
    "modify/delete": "one of you and the run changed it, the other deleted it",
    "binary": "you and the run changed this binary file",
    "rename/delete": "one of you and the run renamed it, the other deleted it",
    "rename/rename": "you and the run gave it different names",
    "file/directory": "one of you and the run made a file of it, the other a directory",
    "distinct modes": "one of you and the run made a file of it, the other a link",
}


@dataclass(frozen=True, slots=True)
class Patch:
    """What to bring in: the difference of two trees, which hold each of the `places` under its name."""

    places: tuple[BaseDirectory, ...]

    base: TreeId
    theirs: TreeId


@dataclass(frozen=True, slots=True)
class Plan:
    """`before` and `after`: the files of the writable places now, and with the patch. `left_out`: files that the patch
    changes in places that are not writable.
    """

    before: TreeId
    after: TreeId
    changes: tuple[FileChange, ...] = ()
    parts: tuple[Part, ...] = ()
    refused: tuple[Obstacle, ...] = ()
    left_out: tuple[str, ...] = ()


def plan(
    repository: PrivateRepository,
    patch: Patch,
    *,
    paths: Sequence[str] = (),
    permissions: Mapping[str, int] | None = None,
) -> Plan:
    """`paths`: only what the patch changes at or below these, by the
    names in replies or absolute; empty: all of it. `permissions`: of files that are made again.

    Raises `MassgenError` invalid_arguments for a path at which nothing changes, `GitFailed`, `OSError`.
    """
    writable = [place for place in patch.places if place.writable]
    chosen, left_out = select(repository, patch, paths)
    before = repository.combined({place.name: _present(repository, place, patch) for place in writable})
    merged = repository.merge(_only(repository, patch.base, writable), before, chosen)
    refused = tuple(Obstacle(os.fsdecode(path), READ_ONLY) for path in left_out if paths)
    refused += tuple(Obstacle(os.fsdecode(one.path), _why(one.reason)) for one in merged.conflicts)
    told = tuple(map(os.fsdecode, left_out))
    if refused:
        return Plan(before, before, refused=refused, left_out=told)
    parts, refused = _parts(repository, writable, before, merged.tree, permissions or {})
    changes = repository.changes(before, merged.tree)
    return Plan(before, merged.tree, changes, parts, refused, told)


def _present(repository: PrivateRepository, place: BaseDirectory, patch: Patch) -> TreeId:
    """The files of a place as they are now."""
    root = Path(place.path)
    like = [repository.part(tree, place.name) for tree in (patch.base, patch.theirs)]
    return repository.write_tree(root, like=like, ignore=place.rules, above=root.parts).tree


def select(repository: PrivateRepository, patch: Patch, paths: Sequence[str]) -> tuple[TreeId, list[bytes]]:
    """The writable places with the chosen changes alone, and the paths of those in other places."""
    writable = [place for place in patch.places if place.writable]
    names = {os.fsencode(place.name) for place in writable}
    chosen = _chosen(repository.changes(patch.base, patch.theirs), patch.places, paths)
    files = repository.files(_only(repository, patch.base, writable))
    left_out: list[bytes] = []
    for change in chosen:
        if change.path.split(b"/")[0] not in names:
            left_out.append(change.path)
            continue
        files.pop(change.earlier_path or change.path, None)
        if change.after is not None:
            files[change.path] = change.after
    return repository.tree_of(files), left_out


def _chosen(changes: Sequence[FileChange], places: Sequence[BaseDirectory], paths: Sequence[str]) -> list[FileChange]:
    if not paths:
        return list(changes)
    chosen: dict[bytes, FileChange] = {}
    for path in paths:
        wanted = _named(path, places)
        found = [one for one in changes if _is_at(one.path, wanted) or _is_at(one.earlier_path, wanted)]
        if not found:
            changed = ", ".join(ascii(os.fsdecode(one.path))[1:-1] for one in changes[:10])
            raise MassgenError("invalid_arguments", f"the run changed nothing at {path[:200]!r}; it changed: {changed}")
        chosen |= {one.path: one for one in found}
    return list(chosen.values())


def _named(path: str, places: Sequence[BaseDirectory]) -> bytes:
    """A path by its name in trees. One of a person's is absolute."""
    for place in places:
        if Path(path).is_relative_to(place.path):
            return os.fsencode(Path(place.name) / Path(path).relative_to(place.path))
    return os.fsencode(os.path.normpath(path))


def _is_at(path: bytes | None, wanted: bytes) -> bool:
    return path is not None and (path == wanted or path.startswith(wanted + b"/"))


def _only(repository: PrivateRepository, tree: TreeId, places: Sequence[BaseDirectory]) -> TreeId:
    return repository.combined({place.name: repository.part(tree, place.name) for place in places})


def _parts(
    repository: PrivateRepository,
    places: Sequence[BaseDirectory],
    before: TreeId,
    after: TreeId,
    permissions: Mapping[str, int],
) -> tuple[tuple[Part, ...], tuple[Obstacle, ...]]:
    """What is to be done in each place where something is, and what is in the way of it."""
    parts: list[Part] = []
    refused: list[Obstacle] = []
    for place in places:
        now, then = (repository.files(repository.part(tree, place.name)) for tree in (before, after))
        steps = [_with_permissions(step, place.name, permissions) for step in steps_between(now, then)]
        if not steps:
            continue
        with HeldDirectory.open(Path(place.path)) as held, repository.reading() as contents:
            found = obstacles(held, steps, contents)
        refused += [replace(one, path=f"{place.name}/{one.path}") for one in found]
        if not found:
            parts.append(planned(Path(place.path), steps))
    return tuple(parts), tuple(refused)


def _with_permissions(step: Step, name: str, permissions: Mapping[str, int]) -> Step:
    return replace(step, permissions=permissions.get(f"{name}/{step.path}"))


def _why(reason: str) -> str:
    return _CONFLICTS.get(reason, f"what you and the run changed cannot be merged ({reason})")
