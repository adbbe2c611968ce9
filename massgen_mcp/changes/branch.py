"""A patch as one commit on a new branch of the person's repository: objects and one reference, nothing else of theirs.

It stands on the commit that is checked out, without what is not committed. No hook, filter or driver takes effect; where
the repository would convert a file on its way into a commit, that is refused, because the commit would not be the one
that the person's own git makes.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.changes.apply import Patch, Plan, merged_with, select
from massgen_mcp.changes.base import BaseDirectory
from massgen_mcp.changes.files import LINK, TreeFile
from massgen_mcp.changes.git import Git
from massgen_mcp.changes.obstacles import Obstacle
from massgen_mcp.changes.repository import PrivateRepository, TreeId
from massgen_mcp.changes.user_repository import UserRepository
from massgen_mcp.errors import MassgenError

_UNTOUCHED = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
_CONVERTING = ("filter", "ident", "working-tree-encoding")
_LINE_ENDS = ("text", "eol")
_NOT_SAID = (b"unspecified", b"unset")


@dataclass(frozen=True, slots=True)
class BranchPlan:
    """`commit` is in the private repository; `name` is free in the person's."""

    plan: Plan
    repository: UserRepository
    name: str
    commit: str = ""


def plan_branch(
    repository: PrivateRepository, patch: Patch, name: str, message: str, *, paths: Sequence[str] = ()
) -> BranchPlan:
    """Raises `MassgenError` invalid_arguments, invalid_action, `GitFailed`, `OSError`."""
    chosen, left_out = select(repository, patch, paths)
    places = [place for place in patch.places if place.writable]
    user = _repository_of(places)
    git = Git(user.git_dir)
    if git.outcome("check-ref-format", "--branch", name, accepted=(0, 1, 128))[0] or name.startswith("-"):
        raise MassgenError("invalid_arguments", f"{name[:80]!r} is no name of a branch")
    if git.outcome("rev-parse", "-q", "--verify", f"refs/heads/{name}", accepted=(0, 1))[0] == 0:
        raise MassgenError("invalid_arguments", f"there is a branch {name!r} already; name a new one")
    code, head = git.outcome("rev-parse", "-q", "--verify", "HEAD^{commit}", accepted=(0, 1, 128))
    if code:
        raise MassgenError("invalid_action", f"{user.top} has no commit that a branch could begin at")
    parent = head.decode().strip()
    committed = repository.files(TreeId(parent))
    before = repository.tree_of({**_renamed(committed, user, places)})
    plan = merged_with(repository, patch, before, chosen, left_out, named=bool(paths))
    if plan.refused or not plan.changes:
        return BranchPlan(plan, user, name)
