"""Copies of a tree that several agents get: sharing their blocks on disk where the file system can, else whole.

Never by hard links: a program that writes into its own copy in place would write into all.
"""

import os
import re
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

from massgen_mcp.changes.base import Base, BaseDirectory
from massgen_mcp.changes.files import KnownFiles, TreeFile
from massgen_mcp.changes.git import MAX_SECONDS, GitFailed
from massgen_mcp.changes.repository import PrivateRepository
from massgen_mcp.secret_files import (
    EXAMINED_BYTES,
    depends_on_content,
    holds_credential,
    is_from_package,
    is_secret,
)
from massgen_mcp.workspace import openat
from massgen_mcp.workspace.snapshot import remove_tree

_FICLONE = 0x40049409


class Copies:
    """Lays a base out in one workspace after the other, before anybody works in them."""

    def __init__(self, repository: PrivateRepository, base: Base) -> None:
        self._repository = repository
        self._base = base
        self._first: dict[str, Path] = {}
        self._files: dict[str, Mapping[bytes, TreeFile]] = {}

    def lay_out(self, workspace: Path) -> dict[str, KnownFiles]:
        """Give a workspace its copies, and say what is known of the files in them. What lies in their places gives way.
        Raises `GitFailed`, `OSError`.
        """
        known: dict[str, KnownFiles] = {}
        for directory in self._base.directories:
            place = workspace / directory.name
            remove_tree(place)
            partial = workspace / f".{secrets.token_hex(8)}.partial"
            try:
                self._copy(directory, partial)
                partial.rename(place)
            except BaseException:
                remove_tree(partial)
                raise
            self._first.setdefault(directory.name, place)
            known[directory.name] = KnownFiles.of(place, self._files[directory.name])
        return known

    def _copy(self, directory: BaseDirectory, into: Path) -> None:
        name = directory.name
        tree = self._repository.part(self._base.id, name)
        if name not in self._files:
            self._files[name] = self._repository.files(tree)
        first = self._first.get(name)
        if first is not None and (command := _clone_command(into.parent)) and cloned([*command, first, into], into):
            return
        self._repository.check_out(tree, into)
        copy_ignored(directory, into)
        for below in directory.shared:
            if (place := place_in(into, below)) is not None:
                # Where commands find what is in no copy: a place inside the sandbox, and nowhere else.
                place.symlink_to(f"/context/{name}/{below}")


def known_as(base: Base) -> tuple[tuple[str, str], ...]:
    """The paths of the directories, each with the place of its copy for commands."""
    from massgen_mcp.sandbox import WORKSPACE  # what only reads runs needs none of it

    return tuple((one.path, f"{WORKSPACE}/{one.name}") for one in base.directories)


def copy_ignored(directory: BaseDirectory, copy: Path) -> None:
    """Give a copy its own of the ignored directories that the config names."""
    _copy_directories(directory.copied, Path(directory.path), copy)


def copy_installed(directory: BaseDirectory, copy: Path, made: Path) -> None:
    """Give a copy its own of what the setup made, where it has its own. `made`: where the setup made all of it."""
    _copy_directories(directory.installed_copies, made / directory.name, copy)


def place_in(copy: Path, below: str) -> Path | None:
    """Where something new can be put into a directory, with the directories that lead there; None if something is in
    its place, or a link or a file on the way. Nobody else may write there meanwhile.
    """
    place = copy / below
    above = [copy, *(copy.joinpath(*Path(below).parts[:depth]) for depth in range(1, len(Path(below).parts)))]
    if os.path.lexists(place) or any(one.is_symlink() or (one.exists() and not one.is_dir()) for one in above):
        return None
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def cloned(command: Sequence[str | Path], target: Path, seconds: float = MAX_SECONDS) -> bool:
    """Whether this command made the target in so many seconds; what it made otherwise is removed."""
    try:
        subprocess.run(command, capture_output=True, timeout=seconds, check=True)  # noqa: S603 - no shell
    except (OSError, subprocess.SubprocessError):
        remove_tree(target)
        return False
    return True


def _clone_command(directory: Path) -> list[str] | None:
    """What copies a directory so that both share their blocks on disk, if that can be done here."""
    if sys.platform == "darwin":
        return ["/bin/cp", "-c", "-R", "-p"]
    program = shutil.which("cp")
    return [program, "-a", "--reflink=always"] if program and shares_blocks(directory) else None


def shares_blocks(directory: Path) -> bool:
    """Whether two files in a directory can share their blocks on disk."""
    if sys.platform != "linux":
        return False
    import fcntl

    with tempfile.TemporaryFile(dir=directory) as one, tempfile.TemporaryFile(dir=directory) as other:
        one.write(b"x")
        one.flush()
        try:
            fcntl.ioctl(other.fileno(), _FICLONE, one.fileno())
        except OSError:
            return False
    return True


def _copy_directories(names: Iterable[str], source: Path, copy: Path) -> None:
    """Copy the directories of these names, with links as links; what commonly holds secrets, and what is no file, is
    left out.
    """
    for name in names:
        place = place_in(copy, name)
        if place is None or not (source / name).is_dir():
            continue
        try:
            shutil.copytree(source / name, place, symlinks=True, ignore=_left_out)
        except shutil.Error as error:
            raise GitFailed(f"cannot copy {source / name}: {str(error)[:200]}") from error


def _left_out(directory: str, names: list[str]) -> list[str]:
    return [name for name in names if not _may_copy(Path(directory, name))]


def _may_copy(place: Path) -> bool:
    try:
        kind = place.lstat().st_mode
        if is_secret(place.parts):
            return is_from_package(place)
        if stat.S_ISREG(kind) and depends_on_content(place.parts):
            with place.open("rb") as file:
                content = file.read(EXAMINED_BYTES)
            return not holds_credential(place.parts, content) or is_from_package(place)
    except OSError:
        return False
    return stat.S_ISREG(kind) or stat.S_ISDIR(kind) or stat.S_ISLNK(kind)


# ---------------------------------------------------------------------------------------------------------------------
# A repository of its own in every copy, with the base as its only commit, for the git of agents' commands.
# It is put into a copy once and is the agent's from then on: whatever becomes of it, nothing outside of the sandbox
# reads it, no tree holds it, and it leads nowhere. It borrows no objects, so that no history of the user's is in it,
# nor work of other agents.


_OWN = ".git"
_CONFIG = """\
[core]
\trepositoryFormatVersion = 0
\tbare = false
\tfileMode = true
\tautocrlf = false
\tlogAllRefUpdates = true
[user]
\tname = agent
\temail = agent@localhost
[gc]
\tauto = 0
[maintenance]
\tauto = false
[init]
\tdefaultBranch = main
"""
_ATTRIBUTES = "* -text -ident !eol !filter !working-tree-encoding\n"
"""The bytes of files are their content here, too."""
_GLOB = re.compile(rb"([\\*?\[])")


class CopyHistory:
    """For the copies of one run. Safe from several threads."""

    def __init__(self, repository: PrivateRepository, base: Base, place: Path) -> None:
        """`place`: a directory of ours on the file system of the workspaces, which is made when it is needed."""
        self._repository = repository
        self._base = base
        self._place = place
        self._made = Lock()
        self._refused: dict[str, str] = {}

    def put_into(self, workspace: Path) -> list[str]:
        """Give each copy in a workspace its repository, unless something is in its place. Returns why one has none."""
        for number, directory in enumerate(self._base.directories):
            if directory.name not in self._refused:
                try:
                    self._put(directory, self._place / str(number), workspace)
                except (GitFailed, OSError) as error:
                    self._refused[directory.name] = str(error)
        return [f"[git has no history of {name}: {why}]" for name, why in self._refused.items()]

    def _put(self, directory: BaseDirectory, made: Path, workspace: Path) -> None:
        """An agent's programs may work in the copy at the same time: nothing of theirs is followed."""
        with openat.closing(os.open(workspace, openat.DIRECTORY_FLAGS)) as root:
            try:
                copy = os.open(directory.name, openat.DIRECTORY_FLAGS, dir_fd=root)
            except OSError:
                return  # the agent has made something else of it
            with openat.closing(copy):
                with suppress(FileNotFoundError):
                    os.stat(_OWN, dir_fd=copy, follow_symlinks=False)
                    return
                with self._made:
                    if not made.exists():
                        self._make(directory, made)
                own = self._place / secrets.token_hex(8)
                try:
                    shutil.copytree(made, own)
                    with suppress(FileExistsError, NotADirectoryError):
                        os.rename(own, _OWN, dst_dir_fd=copy)
                finally:
                    remove_tree(own)

    def _make(self, directory: BaseDirectory, made: Path) -> None:
        partial = self._place / secrets.token_hex(8)
        for part in ("info", "objects/info", "objects/pack", "refs/heads", "refs/tags"):
            (partial / part).mkdir(mode=0o700, parents=True)
        tree = self._repository.part(self._base.id, directory.name)
        commit = self._repository.write_history(tree, partial)
        links = b"".join(b"/" + _GLOB.sub(rb"\\\1", os.fsencode(one)) + b"\n" for one in directory.in_no_tree)
        (partial / "info" / "exclude").write_bytes(directory.rules + links)
        (partial / "info" / "attributes").write_text(_ATTRIBUTES)
        (partial / "config").write_text(_CONFIG)
        (partial / "refs" / "heads" / "main").write_text(f"{commit}\n")
        (partial / "HEAD").write_text("ref: refs/heads/main\n")
        partial.rename(made)
