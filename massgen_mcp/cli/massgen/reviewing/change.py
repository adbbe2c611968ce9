"""The change that is reviewed: a unified diff, and the lines of its new side.

Git works on a private repository that borrows the objects of the user's, so no program that a repository names is
run. A pull request is fetched with the user's own access to its address, and nothing of it is checked out.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from massgen_mcp.changes.git import Git, GitFailed, fetch
from massgen_mcp.changes.repository_view import open_view, read_origin
from massgen_mcp.changes.user_repository import UserRepository
from massgen_mcp.cli.output import print_error
from massgen_mcp.config.access.held_keys import without_keys
from massgen_mcp.config.diagnostics import show_name
from massgen_mcp.errors import MassgenError
from massgen_mcp.nearest import did_you_mean
from massgen_mcp.views.plain_text import counted

_DIFF = (
    *("-c", "core.quotePath=false", "diff", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=dirty"),
)
"""Into submodules git would look with their own settings."""
_MAIN = ("refs/remotes/origin/HEAD", "origin/main", "origin/master", "main", "master")
"""Where the main branch is looked for, in this order."""
_WITH_LOGIN = re.compile(r"^(https?://)[^/\s]*@")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class ReviewedChange:
    """`top`: the working tree that is the change's new side; None: there are no files to look at."""

    source: str
    """Where it comes from, in words."""
    diff: str
    top: Path | None = None
    evidence: str = ""
    """What was printed where it was run. Whoever wrote the change can have had a hand in that."""

    @cached_property
    def rows(self) -> Sequence[str]:
        """Of the diff, as git counts them: a form feed and the like end none."""
        return self.diff.replace("\r\n", "\n").split("\n")

    @cached_property
    def lines(self) -> Mapping[str, Mapping[int, str]]:
        """By file: the lines of the new side that the diff shows, by their number."""
        return dict(_files(self.rows))

    @property
    def size(self) -> str:
        lines = [line for line in self.rows if not line.startswith(("+++", "---"))]
        added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
        return f"{counted(len(self.lines), 'file')}, +{added} -{removed} lines"


def _files(lines: Sequence[str]) -> Iterator[tuple[str, dict[int, str]]]:
    shown: dict[int, str] = {}
    old = new = number = 0
    for place, line in enumerate(lines):
        if (old > 0 or new > 0) and line[:1] in (" ", "+", "-", ""):
            old -= line[:1] != "+"
            if line[:1] != "-":
                shown[number] = line[1:]
                number, new = number + 1, new - 1
        elif found := _HUNK.match(line):
            old, number, new = int(found[1] or 1), int(found[2]), int(found[3] or 1)
        elif line.startswith("+++ "):
            before = lines[place - 1].removeprefix("--- ") if place else ""
            path = before if line == "+++ /dev/null" else line.removeprefix("+++ ")
            shown = {}
            yield re.sub("^[ab]/", "", path.partition("\t")[0]), shown


def change_of(diff: str | None, branch: str | None, pr: int | None, cwd: Path) -> ReviewedChange:
    """Raises `MassgenError` invalid_arguments."""
    try:
        if diff is not None:
            given = ReviewedChange("standard input" if diff == "-" else diff, _given_diff(diff))
            if given.diff.strip() and not given.lines and not given.diff.startswith("diff --git "):
                raise MassgenError("invalid_arguments", f"--diff {show_name(diff)}: this is no unified diff")
            return given
        user = UserRepository.around(cwd)
        if user is None:
            raise MassgenError("invalid_arguments", "this directory is in no git repository; give the change as --diff")
        with open_view(user) as view:
            if pr is not None:
                return _pull_request(view, user, branch, pr)
            return _working_tree(view, user, branch)
    except GitFailed as error:
        raise MassgenError("invalid_arguments", f"the change cannot be found: {error}") from error


def _working_tree(view: Git, user: UserRepository, branch: str | None) -> ReviewedChange:
    base, head = _base_commit(view, branch), _commit(view, ("HEAD",))
    since = view.run("merge-base", base, head).decode().strip()
    text = view.run(*_DIFF, since, work_tree=user.top)
    new = view.run("ls-files", "-z", "--others", "--exclude-standard", work_tree=user.top).count(b"\0")
    without = f", without {counted(new, 'untracked file')} (`git add -N FILE` takes one in)" if new else ""
    return ReviewedChange(f"the working tree since {since[:12]}{without}", _decoded(text), user.top)


def _pull_request(view: Git, user: UserRepository, branch: str | None, pr: int) -> ReviewedChange:
    base, head = _base_commit(view, branch), _fetch_head(view, user, pr)
    since = view.run("merge-base", base, head).decode().strip()
    return ReviewedChange(f"pull request {pr}, {head[:12]}", _decoded(view.run(*_DIFF, since, head)))


def _base_commit(view: Git, branch: str | None) -> str:
    return _commit(view, _MAIN if branch is None else (branch,))


def _given_diff(path: str) -> str:
    try:
        return _decoded(sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes())
    except OSError as error:
        raise MassgenError("invalid_arguments", f"--diff {show_name(path)}: {error.strerror}") from error


def _decoded(diff: bytes) -> str:
    return diff.decode(errors="replace")


def _commit(git: Git, names: Sequence[str]) -> str:
    """Of the first of these names that there is."""
    for name in names:
        given = () if name.startswith("-") else ("rev-parse", "-q", "--verify", f"{name}^{{commit}}")
        if given and not (done := git.outcome(*given, accepted=(0, 1, 128)))[0]:
            return done[1].decode().strip()
    branches = git.run("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes").decode().split()
    near = did_you_mean(names[-1], branches) or f"; branches here: {', '.join(branches[:10]) or 'none'}"
    raise MassgenError(
        "invalid_arguments", f"there is no commit {show_name(names[-1])} to compare with, as --branch says{near}"
    )


def _fetch_head(view: Git, user: UserRepository, pr: int) -> str:
    """Return the last commit of a pull request, as it is at `origin` now."""
    address = read_origin(user, view)
    if address is None:
        raise GitFailed(f"pull request {pr} cannot be fetched: the repository has no remote `origin`")
    if (user.top / address).exists():
        address = str(user.top / address)
    shown = _WITH_LOGIN.sub(r"\1", address)
    print_error(f"Fetching pull request {pr} from {show_name(shown)}")
    ref = f"refs/massgen/pull/{pr}"
    try:
        fetch(view, address, f"+refs/pull/{pr}/head:{ref}", without_keys(os.environ))
    except GitFailed as error:
        raise GitFailed(f"pull request {pr} cannot be fetched from {show_name(shown)}: {error}") from error
    return _commit(view, (ref,))
