"""The change that is reviewed: a unified diff, and the lines of its new side.

Git runs without hooks, filters of attributes and programs for diffs; of a pull request nothing is checked out.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from massgen_mcp.changes.git import MAX_SECONDS, Git, GitFailed, last_line, program
from massgen_mcp.changes.user_repository import UserRepository
from massgen_mcp.config.diagnostics import show_name
from massgen_mcp.errors import MassgenError
from massgen_mcp.nearest import did_you_mean
from massgen_mcp.views.plain_text import counted

_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
_MAIN = ("refs/remotes/origin/HEAD", "origin/main", "origin/master", "main", "master")
"""Where the main branch is looked for, in this order."""
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
        git = Git(user.git_dir)
        base = _commit(git, (branch,) if branch is not None else _MAIN)
        head = _fetched(git, pr, user.top) if pr is not None else _commit(git, ("HEAD",))
        since = git.run(*_QUIET, "merge-base", base, head).decode().strip()
        if pr is not None:
            text = git.run(*_QUIET, "diff", *_PLAIN, since, head)
            return ReviewedChange(f"pull request {pr}, {head[:12]}", _decoded(text))
        text = git.run(*_QUIET, "diff", *_PLAIN, since, work_tree=user.top)
        new = git.run(*_QUIET, "ls-files", "-z", "--others", "--exclude-standard", work_tree=user.top).count(b"\0")
        without = f", without {counted(new, 'untracked file')} (`git add -N FILE` takes one in)" if new else ""
        return ReviewedChange(f"the working tree since {since[:12]}{without}", _decoded(text), user.top)
    except GitFailed as error:
        raise MassgenError("invalid_arguments", f"the change cannot be found: {error}") from error


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


def _fetched(git: Git, pr: int, top: Path) -> str:
    """The last commit of a pull request, as it is at `origin` now, fetched with the caller's own access to it."""
    ref = f"refs/massgen/pull/{pr}"
    command = [program(), *_QUIET, "fetch", "--quiet", "--no-tags", "origin", f"+refs/pull/{pr}/head:{ref}"]
    try:
        subprocess.run(  # noqa: S603 - a program of our own choice, no shell
            command, cwd=top, env=os.environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=MAX_SECONDS,
            check=True,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        raise GitFailed(f"pull request {pr} cannot be fetched from origin: {last_line(error.stderr)}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitFailed(f"pull request {pr} cannot be fetched from origin: {error}") from error
    return _commit(git, (ref,))
