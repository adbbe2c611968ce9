"""A patch as one commit on a new branch of the person's repository: objects and one reference, nothing else of theirs.

It stands on the commit that is checked out, without what is not committed. No hook, filter or driver takes effect;
where the repository would convert a file on its way into a commit, that is refused, because the commit would not be
what the person's own git makes.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from massgen_mcp.changes.apply import ApplyPlan, merged
from massgen_mcp.changes.base import BaseDirectory
from massgen_mcp.changes.choosing import Patch, choose
from massgen_mcp.changes.files import TreeFile
from massgen_mcp.changes.git import Git
from massgen_mcp.changes.obstacles import Obstacle
from massgen_mcp.changes.repository import PrivateRepository, TreeId
from massgen_mcp.changes.user_repository import UserRepository
from massgen_mcp.errors import MassgenError

_UNTOUCHED = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
_CONVERTING = (b"filter", b"ident", b"working-tree-encoding")
_ENDS_OF_LINES = (b"text", b"eol")
_NO = (b"unspecified", b"unset")
_INSTEAD = "apply it to the working tree instead"
_BY = "massgen <massgen@localhost>"

Files = dict[bytes, TreeFile]


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
    parent = _checked_out(user, name)
    prefixes = {os.fsencode(place.name): _prefix(user, place) for place in patch.writable}
    before, beside = _by_place(repository.files(TreeId(parent)), prefixes)
    plan = merged(repository, repository.tree_of(before), chosen)
    after = {_in_repository(path, prefixes): file for path, file in repository.files(plan.after).items()}
    files = repository.files(chosen.base)
    refused = tuple(_explained(repository, one, files, before) for one in plan.refused)
    refused = refused or tuple(_converted(repository, user, plan, prefixes))
    return replace(plan, refused=refused), NewBranch(user, name, parent, repository.tree_of({**beside, **after}))


def make_branch(repository: PrivateRepository, branch: NewBranch, message: str) -> str:
    """The id of the commit. The branch appears whole, or nothing does. Raises `GitFailed`, also where the name has been
    taken since.
    """
    when = f"{int(time.time())} +0000"
    head = f"tree {branch.tree}\nparent {branch.parent}\nauthor {_BY} {when}\ncommitter {_BY} {when}\n"
    commit, pack = repository.packed_commit(f"{head}\n{message}\n".encode(), without=branch.parent)
    git = Git(branch.user.git_dir)
    git.run(*_UNTOUCHED, "unpack-objects", "-q", given=pack)
    git.run(*_UNTOUCHED, "update-ref", "-m", "massgen", f"refs/heads/{branch.name}", commit, "0" * len(commit))
    return commit


def _repository_of(places: Sequence[BaseDirectory]) -> UserRepository:
    found = [UserRepository.around(Path(place.path)) for place in places]
    first = found[0]
    if first is None or first.objects is None or any(one != first for one in found):
        where = ", ".join(place.path for place in places)
        raise MassgenError("invalid_action", f"a branch needs one git repository (of SHA-1) that holds all of: {where}")
    return first


def _checked_out(user: UserRepository, name: str) -> str:
    """The commit that a branch of this name would begin at."""
    git = Git(user.git_dir)
    if name.startswith("-") or git.outcome("check-ref-format", f"refs/heads/{name}", accepted=(0, 1))[0]:
        raise MassgenError("invalid_arguments", f"{name[:80]!r} is no name for a branch")
    wanted = f"refs/heads/{name}/"
    for taken in git.run("for-each-ref", "--format=%(refname)/", "refs/heads").decode(errors="replace").split():
        if taken.startswith(wanted) or wanted.startswith(taken):
            there = taken.removeprefix("refs/heads/").removesuffix("/")
            raise MassgenError("invalid_arguments", f"there is a branch {there!r} already; name another than {name!r}")
    code, commit = git.outcome("rev-parse", "-q", "--verify", "HEAD^{commit}", accepted=(0, 1, 128))
    if code:
        raise MassgenError("invalid_action", f"{user.top} has no commit that a branch could begin at")
    return commit.decode().strip()


def _prefix(user: UserRepository, place: BaseDirectory) -> bytes:
    """What a path in the place begins with in the repository."""
    return b"".join(os.fsencode(part) + b"/" for part in Path(place.path).relative_to(user.top).parts)


def _by_place(committed: Files, prefixes: Mapping[bytes, bytes]) -> tuple[Files, Files]:
    """The files of a commit that lie in a place, as trees of a run name them; and the others."""
    inside: Files = {}
    beside: Files = {}
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


def _explained(repository: PrivateRepository, refused: Obstacle, base: Files, committed: Files) -> Obstacle:
    """A conflict that is none of the person's: the commit has other line ends than the working tree had."""
    earlier, now = (files.get(os.fsencode(refused.path)) for files in (base, committed))
    if earlier is None or now is None or earlier.blob == now.blob:
        return refused
    if _plain(repository.content(earlier)) != _plain(repository.content(now)):
        return refused
    return replace(refused, reason=f"git converts its line ends when it is committed; {_INSTEAD}")


def _plain(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n")


def _converted(
    repository: PrivateRepository, user: UserRepository, plan: ApplyPlan, prefixes: Mapping[bytes, bytes]
) -> Iterator[Obstacle]:
    """The files whose content the repository's attributes would change on the way into a commit."""
    files = {_in_repository(one.path, prefixes): one for one in plan.changes if one.after is not None}
    asked = ("check-attr", "-z", "--stdin", *(name.decode() for name in (*_CONVERTING, *_ENDS_OF_LINES)))
    fields = Git(user.git_dir).run(*_UNTOUCHED, *asked, given=b"\0".join(files), work_tree=user.top).split(b"\0")
    for path, attribute, value in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        after = files[path].after
        if value in _NO or after is None:
            continue
        if attribute in _CONVERTING or b"\r\n" in repository.content(after):
            setting = f"{attribute.decode()}={value.decode(errors='replace')}"
            reason = f"git converts it when it is committed ({setting}); {_INSTEAD}"
            yield Obstacle(os.fsdecode(files[path].path), reason)
