"""The change that is reviewed: a unified diff, and the lines of its new side.

Git works on a private repository that borrows the objects of the user's, so no program that a repository names is
run. A pull request is fetched with the user's own access to its address, and nothing of it is checked out.
"""

import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from massgen_mcp.changes.git import Git, GitFailed, fetch
from massgen_mcp.changes.repository_view import open_view, read_origin
from massgen_mcp.changes.user_repository import UserRepository
from massgen_mcp.cli.massgen.reviewing.diff import DiffSection, IncompleteDiff, read_files
from massgen_mcp.cli.output import print_error
from massgen_mcp.config.access.held_keys import without_keys
from massgen_mcp.config.diagnostics import show_name
from massgen_mcp.errors import MassgenError
from massgen_mcp.nearest import did_you_mean
from massgen_mcp.secret_files import EXAMINED_BYTES, holds_credential, is_secret
from massgen_mcp.views.plain_text import counted

_DIFF = (
    *("-c", "core.quotePath=false", "diff", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=dirty"),
)
"""Into submodules git would look with their own settings."""
_MAIN = ("refs/remotes/origin/HEAD", "origin/main", "origin/master", "main", "master")
"""Where the main branch is looked for, in this order."""
_WITH_LOGIN = re.compile(r"^(https?://)[^/\s]*@")


@dataclass(frozen=True)
class ReviewedChange:
    """`top`: the working tree that is the change's new side; None: there are no files to look at."""

    source: str
    """Where it comes from, in words."""
    diff: str
    top: Path | None = None
    evidence: str = ""
    """What was printed where it was run. Whoever wrote the change can have had a hand in that."""
    notes: tuple[str, ...] = ()
    """Files that are no part of it, by name."""

    @cached_property
    def rows(self) -> Sequence[str]:
        """Of the diff, as git counts them: a form feed and the like end none."""
        return self.diff.replace("\r\n", "\n").removesuffix("\n").split("\n")

    @cached_property
    def files(self) -> Sequence[DiffSection]:
        """Raises `MassgenError` invalid_arguments for a diff of which a part is missing."""
        try:
            return read_files(self.rows)
        except IncompleteDiff as error:
            raise MassgenError(
                "invalid_arguments", f"{show_name(self.source)}: the diff is incomplete: {error}; create it again"
            ) from error

    @cached_property
    def lines(self) -> Mapping[str, Mapping[int, str]]:
        """By file: the lines of the new side that the diff shows, by their number."""
        lines: dict[str, dict[int, str]] = {}
        for file in self.files:
            lines.setdefault(file.path, {}).update(file.lines)
        return lines

    @property
    def unread(self) -> Sequence[str]:
        """The binary files that may hold a text which reviewers should see."""
        return [file.path for file in self.files if file.is_binary and not file.is_media]

    @property
    def media(self) -> Sequence[str]:
        """The binary files that have no text, as their names say."""
        return [file.path for file in self.files if file.is_binary and file.is_media]

    @property
    def size(self) -> str:
        lines = [line for line in self.rows if not line.startswith(("+++", "---"))]
        added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
        return f"{counted(len(self.lines), 'file')}, +{added} -{removed} lines"


def change_of(
    diff: str | None, branch: str | None, pr: int | None, cwd: Path, without: Collection[Path] = ()
) -> ReviewedChange:
    """`without`: untracked files that are no part of the change. Raises `MassgenError` invalid_arguments, also for a
    diff that is empty or not complete.
    """
    try:
        change = _find_change(diff, branch, pr, cwd, without)
    except GitFailed as error:
        raise MassgenError("invalid_arguments", f"cannot find the change: {error}") from error
    if diff is not None and not change.diff.strip():
        raise MassgenError(
            "invalid_arguments",
            f"--diff {show_name(diff)}: the diff is empty, so massgen reviewed nothing. Check the "
            "command that produced it, or review the working tree with `massgen review --branch BASE`",
        )
    if diff is not None and not change.files:
        raise MassgenError(
            "invalid_arguments", f"--diff {show_name(diff)}: this isn't a unified diff; create one with `git diff`"
        )
    return change


def _find_change(
    diff: str | None, branch: str | None, pr: int | None, cwd: Path, without: Collection[Path]
) -> ReviewedChange:
    if diff is not None:
        return ReviewedChange("standard input" if diff == "-" else diff, _given_diff(diff))
    user = UserRepository.around(cwd)
    if user is None:
        raise MassgenError(
            "invalid_arguments", "this directory isn't in a git repository; pass the change with --diff FILE"
        )
    with open_view(user) as view:
        _ignore_diff_attributes(view)
        if pr is not None:
            return _pull_request(view, user, branch, pr)
        return _working_tree(view, user, branch, without)


def _ignore_diff_attributes(view: Git) -> None:
    """Have git find out by its content whether a file is a text: `.gitattributes` is written by others, and could hide
    one.
    """
    with (view.directory / "info" / "attributes").open("ab") as file:
        file.write(b"\n* !diff\n")


def _working_tree(view: Git, user: UserRepository, branch: str | None, without: Collection[Path]) -> ReviewedChange:
    base, head = _base_commit(view, branch), _commit(view, ("HEAD",))
    since = view.run("merge-base", base, head).decode().strip()
    new, hidden = _list_untracked(view, user, {path.resolve() for path in without})
    if new:
        _add_untracked(view, user, new)
    notes: tuple[str, ...] = ()
    if hidden:
        notes = (f"left out {counted(len(hidden), 'untracked file')} that agents must not read: {', '.join(hidden)}",)
    text = view.run(*_DIFF, since, work_tree=user.top).decode(errors="replace")
    return ReviewedChange(f"changes in the working tree since {since[:12]}", text, user.top, notes=notes)


def _list_untracked(view: Git, user: UserRepository, without: Collection[Path]) -> tuple[list[str], list[str]]:
    """Return the untracked files that agents may read, and the others: secrets and repositories of their own."""
    listed = view.run("ls-files", "-z", "--others", "--exclude-standard", work_tree=user.top)
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    shown, hidden = list[str](), list[str]()
    for name in names:
        path = user.top / name
        if path.parent.resolve() / path.name in without:
            continue
        if name.endswith("/") or is_secret(path.parts) or _holds_credential(path):
            hidden.append(show_name(name))
        else:
            shown.append(name)
    return shown, hidden


def _holds_credential(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return holds_credential(path.parts, file.read(EXAMINED_BYTES))
    except OSError as error:
        raise GitFailed(f"{show_name(str(path))} cannot be read: {error.strerror}") from error


def _add_untracked(view: Git, user: UserRepository, names: Sequence[str]) -> None:
    """Make new files a part of the change in the private index, after their names were printed."""
    print_error(f"{counted(len(names), 'untracked file')} included in the change: {', '.join(map(show_name, names))}")
    given = b"\0".join(map(os.fsencode, names))
    added = ("add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul")
    view.run(*added, given=given, work_tree=user.top)


def _pull_request(view: Git, user: UserRepository, branch: str | None, pr: int) -> ReviewedChange:
    base, head = _base_commit(view, branch), _fetch_head(view, user, pr)
    since = view.run("merge-base", base, head).decode().strip()
    return ReviewedChange(f"pull request {pr}, {head[:12]}", view.run(*_DIFF, since, head).decode(errors="replace"))


def _base_commit(view: Git, branch: str | None) -> str:
    return _commit(view, _MAIN if branch is None else (branch,))


def _given_diff(path: str) -> str:
    try:
        diff = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise MassgenError("invalid_arguments", f"--diff {show_name(path)}: {error.strerror}") from error
    return diff.decode(errors="replace")


def _commit(git: Git, names: Sequence[str]) -> str:
    """Of the first of these names that there is."""
    for name in names:
        given = () if name.startswith("-") else ("rev-parse", "-q", "--verify", f"{name}^{{commit}}")
        if given and not (done := git.outcome(*given, accepted=(0, 1, 128)))[0]:
            return done[1].decode().strip()
    if git.outcome("rev-parse", "-q", "--verify", "HEAD", accepted=(0, 1, 128))[0]:
        raise MassgenError(
            "invalid_arguments",
            "this repository has no commit to compare with. Commit something, or review a diff: git diff "
            "--no-index OLD NEW | massgen review --diff -",
        )
    branches = git.run("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes").decode().split()
    near = did_you_mean(names[-1], branches) or f"; branches here: {', '.join(branches[:10]) or 'none'}"
    wanted = f"there is no commit {show_name(names[-1])} to compare with; correct --branch"
    if len(names) > 1:
        wanted = f"found no main branch ({', '.join(_MAIN[1:])}) to compare with; name a branch with --branch BASE"
    raise MassgenError("invalid_arguments", f"{wanted}{near}")


def _fetch_head(view: Git, user: UserRepository, pr: int) -> str:
    """Return the last commit of a pull request, as it is at `origin` now."""
    address = read_origin(user, view)
    if address is None:
        raise GitFailed(
            f"cannot fetch pull request {pr}: the repository has no remote `origin`; add one with `git remote "
            "add origin URL`"
        )
    if (user.top / address).exists():
        address = str(user.top / address)
    shown = _WITH_LOGIN.sub(r"\1", address)
    print_error(f"Fetching pull request {pr} from {show_name(shown)}")
    ref = f"refs/massgen/pull/{pr}"
    try:
        fetch(view, address, f"+refs/pull/{pr}/head:{ref}", without_keys(os.environ))
    except GitFailed as error:
        raise GitFailed(f"cannot fetch pull request {pr} from {show_name(shown)}: {error}") from error
    return _commit(view, (ref,))
