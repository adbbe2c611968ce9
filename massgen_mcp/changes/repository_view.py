"""A look at the user's own repository through a private one, and one new branch in it.

The private one borrows the objects and has copies of the references, the index and the rules. So git never runs with
the settings of a repository, which any stranger may have written: no filter, hook, driver, transport or monitor that it
names is started, and nothing is written there but a pack and a reference, by our own hands.
"""

import os
import re
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from massgen_mcp.changes.files import MIB, small_file
from massgen_mcp.changes.git import Git, GitFailed
from massgen_mcp.changes.held_directory import HeldDirectory
from massgen_mcp.changes.user_repository import UserRepository, copy_file

MAX_REFS = 100_000
"""Files of single references; there may be more in `packed-refs`."""
MAX_PACKED_REFS = 64 * MIB
_HARMLESS = re.compile(r"core\.(filemode|autocrlf|eol|symlinks|ignorecase|precomposeunicode)")
"""Settings that say how files lie in the working tree."""
_WORDS = re.compile(r"[a-z0-9]{1,10}")
_OF_THE_TREE = ("info/attributes", "info/exclude", "packed-refs", "shallow")


@contextmanager
def open_view(user: UserRepository) -> Generator[Git]:
    """Open a private repository in which names of commits, the index and the working tree mean what they mean in the
    user's. Raises `GitFailed` for a repository that isn't the one of this directory, or holds odd files.
    """
    check_is_own_directory(user)
    with tempfile.TemporaryDirectory(prefix="massgen-view-") as scratch:
        place = Path(scratch) / "view.git"
        view = Git.create(place, alternates=[user.common_dir / "objects"], object_format=user.object_format)
        (place / "info" / "attributes").unlink()  # attributes may name drivers; none is known here
        for name in _OF_THE_TREE:
            copy_file(user.common_dir / name, place / name, MAX_PACKED_REFS)
        user.copy_index(place)
        copy_file(user.git_dir / "HEAD", place / "HEAD", MIB)
        _copy_references(user.common_dir / "refs", place / "refs")
        for name, value in _settings(user.common_dir, view):
            if _HARMLESS.fullmatch(name) and _WORDS.fullmatch(value):
                view.run("config", name, value)
        yield view


def read_origin(user: UserRepository, view: Git) -> str | None:
    """Return the address of the remote `origin`, as the repository's own settings have it."""
    addresses = [value for name, value in _settings(user.common_dir, view) if name == "remote.origin.url"]
    return addresses[0] if addresses else None


def check_is_own_directory(user: UserRepository) -> None:
    """Raises `GitFailed` where `.git` leads to a repository that doesn't know this directory: the
    author of the directory may have meant any repository of the user's.
    """
    entry, git_dir = user.top / ".git", user.git_dir.resolve()
    if entry.is_symlink():
        raise GitFailed(f"{entry} is a link")
    if entry.is_dir():
        if user.common_dir.resolve() != git_dir:
            raise GitFailed(f"{entry / 'commondir'} points to another repository, {user.common_dir}")
        return
    worktree = git_dir.parent.name == "worktrees" and user.common_dir.resolve() == git_dir.parent.parent
    if worktree and _names(git_dir / "gitdir", entry):
        return
    if user.common_dir.resolve() == git_dir and _is_submodule(git_dir, user.top):
        return
    raise GitFailed(f"{entry} points to {git_dir}, which doesn't list this directory as a worktree or submodule")


def _names(file: Path, wanted: Path) -> bool:
    with suppress(OSError):
        named = os.fsdecode(small_file(file)).rstrip("\n")
        return (file.parent / named).resolve() == wanted.resolve()
    return False


def _is_submodule(git_dir: Path, top: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix="massgen-view-") as scratch:
        git = Git.create(Path(scratch) / "config.git")
        found = [value for name, value in _settings(git_dir, git) if name == "core.worktree"]
    return bool(found) and (git_dir / found[-1]).resolve() == top.resolve()


def _settings(git_dir: Path, git: Git) -> Iterator[tuple[str, str]]:
    """The settings of a repository's own file, read by git as any other file; what it includes isn't."""
    file = git.directory / "settings-of-the-user"
    copy_file(git_dir / "config", file, MIB)
    if not file.exists():
        return
    printed = git.run("config", "--file", file, "--no-includes", "--null", "--list")
    for setting in printed.decode("utf-8", "surrogateescape").split("\0"):
        name, _, value = setting.partition("\n")
        yield name, value


def _copy_references(source: Path, target: Path) -> None:
    """Copy the references that are files of their own, without following links."""
    if source.is_symlink():
        raise GitFailed(f"{source} is a link")
    waiting, seen = [(source, target)], 0
    while waiting:
        place, copy = waiting.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    seen += 1
                    if seen > MAX_REFS:
                        raise GitFailed(f"{source} has more than {MAX_REFS:,} files")
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((Path(entry.path), copy / entry.name))
                    elif entry.is_file(follow_symlinks=False):
                        copy_file(Path(entry.path), copy / entry.name, MIB)
        except OSError as error:
            raise GitFailed(f"{place} cannot be read: {error.strerror}") from error


# -- a new branch -----------------------------------------------------------------------------------------------------


def check_is_writable(user: UserRepository) -> None:
    """Raises `GitFailed` unless everything that a new branch is written to is a directory, and this user's."""
    check_is_own_directory(user)
    for place in (
        user.git_dir,
        user.common_dir,
        *(user.common_dir / name for name in ("objects", "refs", "refs/heads")),
    ):
        if place.is_symlink() or not place.is_dir():
            raise GitFailed(f"{place} must be a directory, not a link")
        if place.stat().st_uid != os.geteuid():
            raise GitFailed(f"{place} belongs to another user")


def add_branch(user: UserRepository, name: str, commit: str, pack: bytes) -> None:
    """Add a pack and a reference to the user's repository. The branch appears whole, or nothing does. Raises
    `GitFailed`, also where the name has been taken since.
    """
    with tempfile.TemporaryDirectory(prefix="massgen-view-") as scratch:
        place = Path(scratch) / "pack.git"
        Git.create(place, alternates=[user.common_dir / "objects"]).run("index-pack", "--stdin", given=pack)
        made = sorted((place / "objects" / "pack").glob("pack-*.*"), key=lambda one: one.suffix != ".pack")
        try:
            with HeldDirectory.open(user.common_dir) as held:
                for file in made:
                    _write_new(held, f"objects/pack/{file.name}", file.read_bytes(), 0o444)
                held.sync()
                _write_new(held, f"refs/heads/{name}", f"{commit}\n".encode(), 0o644)
                held.sync()
        except FileExistsError as error:
            raise GitFailed(
                f"the branch {name} already exists, or another process is creating it: {error.filename}"
            ) from error
        except OSError as error:
            raise GitFailed(f"{error.filename or user.common_dir} cannot be written: {error.strerror}") from error


def _write_new(held: HeldDirectory, path: str, content: bytes, permissions: int) -> None:
    """Write a file beside its place first, under the name that git locks it with. A pack of that name has the same
    content.
    """
    if path.endswith((".pack", ".idx", ".rev")) and held.status(path) is not None:
        return
    parts = path.split("/")[:-1]
    for depth in range(2, len(parts) + 1):
        above = "/".join(parts[:depth])
        if held.status(above) is None:
            held.make_directory(above, f"{'/'.join(parts[: depth - 1])}/massgen-new.lock")
    lock = f"{path}.lock"
    with os.fdopen(held.make_file(lock, permissions), "wb") as file:
        file.write(content)
    try:
        held.move(lock, path)
    except OSError:
        held.remove(lock)
        raise
