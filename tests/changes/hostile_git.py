"""Repositories that name programs wherever git can be made to start one, and that lead elsewhere."""

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.changes.conftest import Repository

TEXT = "".join(f"line {number}\n" for number in range(1, 21))
"""A file `code` of each repository, as it was committed."""


@dataclass(frozen=True)
class Canary:
    """A program that writes down by which name it was started, and does nothing else."""

    directory: Path

    @property
    def _log(self) -> Path:
        return self.directory / "started"

    def program(self, name: str) -> Path:
        place = self.directory / f"evil-{name}"
        place.write_text(f"#!/bin/sh\necho {name} >> {self._log}\nexit 0\n")
        place.chmod(0o755)
        return place

    def started(self) -> set[str]:
        """The names since the last call."""
        names = {*self._log.read_text().split()} if self._log.exists() else set[str]()
        self._log.unlink(missing_ok=True)
        return names


def committed(path: Path) -> Repository:
    """A repository with a commit, a branch that is checked out, and a change that isn't committed."""
    path.mkdir(parents=True, exist_ok=True)
    made = Repository(path)
    made.git("init", "--quiet", "--initial-branch=main")
    made.commit(code=TEXT, other="one\n")
    made.git("checkout", "--quiet", "-b", "branch")
    made.put(code=TEXT.replace("line 2\n", "line two\n"))
    return made


# -- settings that name programs --------------------------------------------------------------------------------------

SETTINGS = """\
[core]
    fsmonitor = {p}/evil-fsmonitor
    hooksPath = {p}/hooks
    sshCommand = {p}/evil-sshCommand
    gitProxy = {p}/evil-gitProxy
    askPass = {p}/evil-askPass
    pager = {p}/evil-pager
    editor = {p}/evil-editor
    attributesFile = {p}/attributes
    alternateRefsCommand = {p}/evil-alternateRefs
[pager]
    diff = {p}/evil-pager
    for-each-ref = {p}/evil-pager
[filter "evil"]
    clean = {p}/evil-clean
    smudge = {p}/evil-smudge
    required = true
[filter "processed"]
    process = {p}/evil-process
[diff]
    external = {p}/evil-external
    submodule = diff
    ignoreSubmodules = none
[diff "evil"]
    textconv = {p}/evil-textconv
    command = {p}/evil-diffcommand
    cachetextconv = true
[merge "evil"]
    driver = {p}/evil-merge %O %A %B
[credential]
    helper = {p}/evil-credential
[gpg]
    program = {p}/evil-gpg
[commit]
    gpgSign = true
[log]
    showSignature = true
[alias]
    diff = !{p}/evil-alias
    ls-files = !{p}/evil-alias
[uploadpack]
    packObjectsHook = {p}/evil-packObjects
[protocol]
    allow = always
[protocol "ext"]
    allow = always
[trace2]
    eventTarget = {p}/traced
[include]
    path = {p}/included
[extensions]
    worktreeConfig = true
"""
INCLUDED = '[filter "included"]\n    clean = {p}/evil-included\n'
OF_THE_WORKTREE = '[filter "ofworktree"]\n    clean = {p}/evil-ofworktree\n'
HOOKS = (
    "post-checkout",
    "post-index-change",
    "pre-commit",
    "reference-transaction",
    "fsmonitor-watchman",
    "pre-auto-gc",
)
PROGRAMS = (
    *(
        "fsmonitor",
        "sshCommand",
        "gitProxy",
        "askPass",
        "pager",
        "editor",
        "alternateRefs",
        "clean",
        "smudge",
        "process",
    ),
    *("external", "textconv", "diffcommand", "merge", "credential", "gpg", "alias", "packObjects", "included"),
    *("ofworktree", "hook", "submodule", "submonitor", "uploadpack", "ext"),
)


def with_programs(path: Path, canary: Canary) -> Repository:
    """A repository all of whose settings name programs, with a submodule that does the same."""
    made = committed(path)
    places = {name: canary.program(name) for name in PROGRAMS}
    parent = canary.directory
    inner = committed(parent / "inner")
    inner.git("checkout", "--quiet", "--force", "main")
    made.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.path), "sub")
    made.commit(**{".gitattributes": "code filter=evil diff=evil merge=evil\nother filter=processed\n"})
    (path / ".git" / "info").mkdir(exist_ok=True)
    (path / ".git" / "info" / "attributes").write_text("*.i filter=included\n*.w filter=ofworktree\n")
    (parent / "attributes").write_text("* diff=evil\n")
    for folder in (parent / "hooks", path / ".git" / "hooks"):
        folder.mkdir(exist_ok=True)
        for hook in HOOKS:
            (folder / hook).write_bytes(places["hook"].read_bytes())
            (folder / hook).chmod(0o755)
    modules = path / ".git" / "modules" / "sub"
    with (modules / "config").open("a") as config:
        config.write(
            f'[filter "evil"]\n    clean = {places["submodule"]}\n[core]\n    fsmonitor = {places["submonitor"]}\n'
        )
    (modules / "info").mkdir(exist_ok=True)
    (modules / "info" / "attributes").write_text("* filter=evil\n")
    (path / "sub" / "code").write_text("changed in the submodule\n")
    made.put(**{"a.i": "one\n", "a.w": "one\n"})
    made.commit()
    made.put(**{"a.i": "two\n", "a.w": "two\n", "code": TEXT.replace("line 2\n", "line two\n"), "other": "two\n"})
    (parent / "included").write_text(INCLUDED.format(p=parent))
    (path / ".git" / "config.worktree").write_text(OF_THE_WORKTREE.format(p=parent))
    with (path / ".git" / "config").open("a") as config:
        config.write(SETTINGS.format(p=parent))
    canary.started()
    return made


def origin_settings(path: Path, canary: Canary, upstream: Path) -> Mapping[str, str]:
    """By name: what a repository's settings say of `origin`, and what runs a program in plain git."""
    program = canary.program
    plain = f'[remote "origin"]\n    fetch = +refs/heads/*:refs/remotes/origin/*\n    url = {upstream}\n'
    evil = path / "evil.git"
    subprocess.run(["git", "clone", "--quiet", "--mirror", str(upstream), str(evil)], check=True)
    with (evil / "config").open("a") as config:
        config.write(f"[uploadpack]\n    packObjectsHook = {program('packObjects')}\n")
        config.write(f"[core]\n    fsmonitor = {program('fsmonitor')}\n    hooksPath = {canary.directory}/hooks\n")

    def at(url: str) -> str:
        return plain.replace(f"url = {upstream}", f"url = {url}")

    return {
        "ext": at(f"ext::{program('ext')} %S"),
        "ext, with a second address": at(f"ext::{program('ext')} %S") + f"    url = {upstream}\n",
        "uploadpack": plain + f"    uploadpack = {program('uploadpack')}\n",
        "insteadOf": plain + f'[url "ext::{program("ext")} "]\n    insteadOf = {upstream}\n',
        "sshCommand": at("ssh://localhost/x"),
        "gitProxy": at("git://localhost/x"),
        "credential": at("https://localhost:1/x"),
        "a helper of another name": plain + "    vcs = evil\n",
        "an option": at(f"--upload-pack={program('uploadpack')}"),
        "an option of ssh": at(f"ssh://-oProxyCommand={program('ext')}/x"),
        "a repository inside": at("./evil.git"),
        "plain": plain,
    }


# -- repositories that lead elsewhere, or hold what is no file --------------------------------------------------------


def _linked_git(one: Repository, other: Repository) -> None:
    (one.path / ".git").rename(one.path / "old")
    (one.path / ".git").symlink_to(other.path / ".git")


def _git_file(one: Repository, other: Repository) -> None:
    (one.path / ".git").rename(one.path / "old")
    (one.path / ".git").write_text(f"gitdir: {other.path / '.git'}\n")


def _git_file_to_a_worktree(one: Repository, other: Repository) -> None:
    other.git("worktree", "add", "--quiet", str(other.path.parent / "elsewhere"), "main")
    (one.path / ".git").rename(one.path / "old")
    (one.path / ".git").write_text(f"gitdir: {other.path / '.git/worktrees/elsewhere'}\n")


def _commondir(one: Repository, other: Repository) -> None:
    (one.path / ".git" / "commondir").write_text(f"{other.path / '.git'}\n")


def _link(*parts: str) -> Callable[[Repository, Repository], None]:
    def make(one: Repository, other: Repository) -> None:
        place = one.path.joinpath(".git", *parts)
        if place.exists():
            place.rename(one.path / "laid-aside")
        target = other.path.joinpath(".git", *parts)
        target.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    return make


def _pipe(*parts: str) -> Callable[[Repository, Repository], None]:
    def make(one: Repository, _: Repository) -> None:
        place = one.path.joinpath(".git", *parts)
        place.unlink(missing_ok=True)
        os.mkfifo(place)

    return make


def _giant(name: str) -> Callable[[Repository, Repository], None]:
    def make(one: Repository, _: Repository) -> None:
        with (one.path / ".git" / name).open("ab") as file:
            file.truncate(8 * 1024**3)

    return make


def _foreign(one: Repository, _: Repository) -> None:
    os.chown(one.path / ".git" / "objects", 65534, 65534)


LEAD_ELSEWHERE: Mapping[str, Callable[[Repository, Repository], None]] = {
    "a link as .git": _linked_git,
    "a file as .git": _git_file,
    "a file as .git that names a worktree": _git_file_to_a_worktree,
    "commondir": _commondir,
    "a link as objects": _link("objects"),
    "a link as objects/pack": _link("objects", "pack"),
    "a link as refs": _link("refs"),
    "a link as refs/heads": _link("refs", "heads"),
    "a link as refs/heads/team": _link("refs", "heads", "team"),
    "a link as logs": _link("logs"),
    "a pipe as index": _pipe("index"),
    "a pipe as config": _pipe("config"),
    "a pipe as HEAD": _pipe("HEAD"),
    "a pipe as packed-refs": _pipe("packed-refs"),
    "a giant index": _giant("index"),
    "a giant config": _giant("config"),
    "another user's objects": _foreign,
}
