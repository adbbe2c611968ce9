"""What it takes to bring a patch into a person's directories as they are now: a three-way merge, what is in its way.

A plan changes nothing. It is clean, or it names the files for which it cannot be carried out, and then none of it is.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from massgen_mcp.changes.apply_records import ChangeStep, IntentPart, planned, steps_between
from massgen_mcp.changes.base import BaseDirectory
from massgen_mcp.changes.choosing import Chosen, Patch, choose
from massgen_mcp.changes.files import TreeFiles, TreeRules
from massgen_mcp.changes.git import Git, GitFailed
from massgen_mcp.changes.held_directory import HeldDirectory
from massgen_mcp.changes.obstacles import Obstacle, obstacles
from massgen_mcp.changes.repository import FileChange, PrivateRepository, TreeId
from massgen_mcp.changes.repository_view import add_branch, check_is_writable, open_view
from massgen_mcp.changes.user_repository import UserRepository
from massgen_mcp.errors import MassgenError

_CONFLICTS = {
    "content": "you and the run changed the same lines",
    "add/add": "you and the run added different files with this name",
    "modify/delete": "one side changed this file, and the other deleted it",
    "binary": "you and the run both changed this binary file",
    "rename/delete": "one side renamed this file, and the other deleted it",
    "rename/rename": "you and the run renamed this file differently",
    "file/directory": "one side made this path a file, the other a directory",
    "distinct types": "one side made this path a file, the other a link",
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


def conflicts(repository: PrivateRepository, patch: Patch) -> tuple[Obstacle, ...]:
    """Why the whole patch does not fit to the directories as they are now. Raises as `plan`."""
    present = repository.combined({place.name: _present(repository, place, patch) for place in patch.places})
    return merged(repository, present, Chosen(patch.base, patch.theirs, (), ())).refused


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
        refused = tuple(Obstacle(place.name, f"{place.path} is gone or is no longer a directory") for place in gone)
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
    written = repository.write_tree(
        root,
        like=[base],
        rules=TreeRules(place.rules, place.in_no_tree, place.kept_outputs, root.parts),
        all_new=False,
    )
    return written.tree


def _absent(place: Path) -> set[str]:
    """What a sparse checkout leaves out there."""
    around = UserRepository.around(place)
    return set(map(os.fsdecode, around.tracked(place).absent)) if around is not None else set()


def _why(reason: str) -> str:
    return _CONFLICTS.get(reason, f"cannot merge your changes with the run's ({reason})")


# ---------------------------------------------------------------------------------------------------------------------
# A patch as one commit on a new branch of the person's repository: objects and one reference, nothing else of theirs.
# It stands on the commit that is checked out, without what is not committed. No hook, filter or driver takes effect;
# where the repository would convert a file on its way into a commit, that is refused, because the commit would not be
# what the person's own git makes.


_CONVERTING = (b"filter", b"ident", b"working-tree-encoding")
_ENDS_OF_LINES = (b"text", b"eol")
_NO = (b"unspecified", b"unset")
_INSTEAD = "apply the changes to the working tree instead"
_BY = "massgen <massgen@localhost>"


@dataclass(frozen=True, slots=True)
class NewBranch:
    """`tree` is the whole of the commit that is to be made on `parent`, in the private repository."""

    user: UserRepository
    name: str
    parent: str
    tree: TreeId


def plan_branch(
    repository: PrivateRepository, patch: Patch, name: str, *, paths: Sequence[str] = ()
) -> tuple[ApplyPlan, NewBranch]:
    """Raises as `choose`, `MassgenError` invalid_arguments for a name that cannot be taken, invalid_action for a
    directory that such a commit cannot be made for, `GitFailed`, `OSError`.
    """
    chosen = choose(repository, patch, paths)
    user = _repository_of(patch.writable)
    with open_view(user) as view:
        return _plan_branch(repository, patch, chosen, user, view, name)


def _plan_branch(
    repository: PrivateRepository, patch: Patch, chosen: Chosen, user: UserRepository, view: Git, name: str
) -> tuple[ApplyPlan, NewBranch]:
    parent = _checked_out(user, view, name)
    prefixes = {os.fsencode(place.name): _prefix(user, place) for place in patch.writable}
    before, beside = _by_place(repository.files(TreeId(parent)), prefixes)
    plan = merged(repository, repository.tree_of(before), chosen)
    after = {_in_repository(path, prefixes): file for path, file in repository.files(plan.after).items()}
    files = repository.files(chosen.base)
    refused = tuple(_explained(repository, one, files, before) for one in plan.refused)
    refused = refused or tuple(_converted(repository, user, view, plan, prefixes))
    return replace(plan, refused=refused), NewBranch(user, name, parent, repository.tree_of({**beside, **after}))


def make_branch(repository: PrivateRepository, branch: NewBranch, message: str) -> str:
    """The id of the commit. The branch appears whole, or nothing does. Raises `GitFailed`, also where the name has been
    taken since.
    """
    when = f"{int(time.time())} +0000"
    head = f"tree {branch.tree}\nparent {branch.parent}\nauthor {_BY} {when}\ncommitter {_BY} {when}\n"
    commit, pack = repository.packed_commit(f"{head}\n{message}\n".encode(), without=branch.parent)
    add_branch(branch.user, branch.name, commit, pack)
    return commit


def _repository_of(places: Sequence[BaseDirectory]) -> UserRepository:
    found = [UserRepository.around(Path(place.path)) for place in places]
    first = found[0]
    if first is None or first.objects is None or any(one != first for one in found):
        where = ", ".join(place.path for place in places)
        raise MassgenError(
            "invalid_action", f"to create a branch, a single SHA-1 git repository must contain all of these: {where}"
        )
    try:
        check_is_writable(first)
    except GitFailed as error:
        raise MassgenError("invalid_action", f"cannot create the branch: {error}; {_INSTEAD}") from error
    return first


def _checked_out(user: UserRepository, git: Git, name: str) -> str:
    """The commit that a branch of this name would begin at."""
    if name.startswith("-") or git.outcome("check-ref-format", f"refs/heads/{name}", accepted=(0, 1))[0]:
        raise MassgenError("invalid_arguments", f"{name[:80]!r} isn't a valid branch name")
    wanted = f"refs/heads/{name}/"
    for taken in git.run("for-each-ref", "--format=%(refname)/", "refs/heads").decode(errors="replace").split():
        if taken.startswith(wanted) or wanted.startswith(taken):
            there = taken.removeprefix("refs/heads/").removesuffix("/")
            raise MassgenError(
                "invalid_arguments", f"the branch {there!r} already exists; choose a name other than {name!r}"
            )
    code, commit = git.outcome("rev-parse", "-q", "--verify", "HEAD^{commit}", accepted=(0, 1, 128))
    if code:
        raise MassgenError("invalid_action", f"{user.top} has no commit to start a branch from")
    return commit.decode().strip()


def _prefix(user: UserRepository, place: BaseDirectory) -> bytes:
    """What a path in the place begins with in the repository."""
    return b"".join(os.fsencode(part) + b"/" for part in Path(place.path).relative_to(user.top).parts)


def _by_place(committed: TreeFiles, prefixes: Mapping[bytes, bytes]) -> tuple[TreeFiles, TreeFiles]:
    """The files of a commit that lie in a place, as trees of a run name them; and the others."""
    inside: TreeFiles = {}
    beside: TreeFiles = {}
    for path, file in committed.items():
        place = next((name for name, prefix in prefixes.items() if path.startswith(prefix)), None)
        if place is None:
            beside[path] = file
        else:
            inside[place + b"/" + path.removeprefix(prefixes[place])] = file
    return inside, beside


def _in_repository(path: bytes, prefixes: Mapping[bytes, bytes]) -> bytes:
    name, _, rest = path.partition(b"/")
    return prefixes[name] + rest


def _explained(repository: PrivateRepository, refused: Obstacle, base: TreeFiles, committed: TreeFiles) -> Obstacle:
    """A conflict that is none of the person's: the commit has other line ends than the working tree had."""
    earlier, now = (files.get(os.fsencode(refused.path)) for files in (base, committed))
    if earlier is None or now is None or earlier.blob == now.blob:
        return refused
    if _plain(repository.content(earlier)) != _plain(repository.content(now)):
        return refused
    return replace(refused, reason=f"git converts its line endings on commit; {_INSTEAD}")


def _plain(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n")


def _converted(
    repository: PrivateRepository, user: UserRepository, view: Git, plan: ApplyPlan, prefixes: Mapping[bytes, bytes]
) -> Iterator[Obstacle]:
    """The files whose content the repository's attributes would change on the way into a commit."""
    files = {_in_repository(one.path, prefixes): one for one in plan.changes if one.after is not None}
    asked = ("check-attr", "-z", "--stdin", *(name.decode() for name in (*_CONVERTING, *_ENDS_OF_LINES)))
    fields = view.run(*asked, given=b"\0".join(files), work_tree=user.top).split(b"\0")
    for path, attribute, value in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        after = files[path].after
        if value in _NO or after is None:
            continue
        if attribute in _CONVERTING or b"\r\n" in repository.content(after):
            setting = f"{attribute.decode()}={value.decode(errors='replace')}"
            reason = f"git converts it on commit ({setting}); {_INSTEAD}"
            yield Obstacle(os.fsdecode(files[path].path), reason)
