"""What lies in a directory beside the files that are known by name, and what of it git would ignore.

Git never works in the directory, where it would wait for ever for a pipe that somebody puts in the place of a file that
it reads. It is asked about names, in an empty image of the directory that holds copies of the `.gitignore` files.
"""

import os
import tempfile
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.changes.build_outputs import INSTALLED, is_kept, is_library, is_made, is_marked, is_output
from massgen_mcp.changes.files import NOTHING_THERE, LeftOut, TooLarge, TreeRules, parents, small_file
from massgen_mcp.changes.git import Git
from massgen_mcp.workspace import openat

_RULES = ".gitignore"
_OWN = ".git"
_DEEPEST = 200
"""Directories in each other that are entered; git is asked once for each level."""
_ROOM = 300
"""Bytes that a path is kept from being too long for the image, which lies deeper than a directory may itself."""


@dataclass(frozen=True, slots=True)
class Untracked:
    """`files`: what git would not ignore. `ignored`: directories that git ignores, or whose own `.gitignore` ignores
    itself and all there is. Not those in which it happens to ignore all that is there now: a new file may belong there.
    `compiled`: libraries beside the files that git ignores, or among the outputs that are left out.
    """

    files: list[bytes]
    ignored: list[bytes]
    compiled: list[bytes]


def untracked(
    git: Git,
    directory: Path,
    named: Collection[bytes],
    rules: TreeRules,
    left_out: LeftOut,
) -> Untracked:
    """`named`: the files that are known, ignored or not. Adds to `left_out` directories with a repository of their own,
    which are not entered; those that cannot be entered, or lie too deep; and what tools made and git would not ignore:
    directories of installed packages among that are ignored as well. Raises `TooLarge` if there is more than the rules
    allow, `GitFailed`, `OSError`.
    """
    with tempfile.TemporaryDirectory(prefix="image.", dir=git.directory) as scratch:
        image = Path(scratch) / "tree"
        image.mkdir()
        (Path(scratch) / "ignore").write_bytes(rules.ignore)
        root = os.open(directory, openat.DIRECTORY_FLAGS)
        with openat.closing(root):
            return _Walk(git, root, image, frozenset(named), rules, left_out).walked()


class _Walk:
    def __init__(
        self,
        git: Git,
        root: int,
        image: Path,
        named: frozenset[bytes],
        rules: TreeRules,
        left_out: LeftOut,
    ) -> None:
        self._git = git
        self._root = root
        self._image = image
        self._named = named
        self._leading = {parent for path in named for parent in parents(path)}
        self._most = rules.limits.files
        self._without = frozenset(rules.without)
        self._kept = rules.kept
        self._left_out = left_out
        self._files: list[bytes] = []
        self._ignored: list[tuple[bytes, bool]] = []
        self._directories = 0
        self._longest = os.pathconf(image, "PC_PATH_MAX") - len(os.fsencode(image)) - _ROOM

    def walked(self) -> Untracked:
        level = self._looked_into([b""])
        while level:
            asked = {path: is_directory for path, is_directory in level if path not in self._named or is_directory}
            ignored = self._ignored_of(asked)
            entered = list[bytes]()
            for path, is_directory in asked.items():
                if path in ignored and path not in self._leading:
                    self._ignored.append((path, is_directory))
                elif self._is_output(path, is_directory=is_directory):
                    self._note_output(path, is_installed=path.rpartition(b"/")[2].decode(errors="replace") in INSTALLED)
                elif not is_directory:
                    self._files.append(path)
                elif self._is_repository(path):
                    self._left_out.repositories.append(path)
                elif path.count(b"/") >= _DEEPEST or len(path) > self._longest:
                    self._left_out.unreadable.append(path)
                else:
                    entered.append(path)
            if max(len(self._files), len(self._ignored)) > self._most:
                raise TooLarge(f"contains more than {self._most:,} files")
            level = self._looked_into(entered)
        self._left_out.outputs.sort()
        beside = (*(path for path, is_directory in self._ignored if not is_directory), *self._left_out.outputs)
        compiled = sorted(path for path in beside if is_library(path))
        return Untracked(self._files, self._ignored_directories(), compiled)

    def _is_output(self, path: bytes, *, is_directory: bool) -> bool:
        if path in self._leading:
            return False
        if is_directory:
            return is_output(path, directory=True, kept=self._kept)
        made = is_made(path, self._named) and not is_kept(path, self._kept)
        return made or is_output(path, directory=False, kept=self._kept)

    def _ignored_directories(self) -> list[bytes]:
        """The outermost of them."""
        others = {parent for path in (*self._files, *self._left_out.repositories) for parent in parents(path)}
        own = (path.rpartition(b"/") for path, is_directory in self._ignored if not is_directory)
        whole = {above for above, _, name in own if above and name == os.fsencode(_RULES)} - others - self._leading
        found = {*whole, *(path for path, is_directory in self._ignored if is_directory)}
        return sorted(path for path in found if whole.isdisjoint(parents(path)))

    def _looked_into(self, directories: list[bytes]) -> list[tuple[bytes, bool]]:
        """The files, links and directories right in these directories, and which of them are directories."""
        found: list[tuple[bytes, bool]] = []
        for directory in directories:
            try:
                with self._directory_fd(directory) as fd:
                    entries = list(_entries(fd, directory + b"/" if directory else b""))
                    rules = _rules(fd)
            except OSError as error:
                if error.errno not in NOTHING_THERE:
                    self._left_out.unreadable.append(directory)
                continue
            names = {path.rpartition(b"/")[2] for path, is_directory in entries if not is_directory}
            if directory and directory not in self._leading and is_marked(names) and not is_kept(directory, self._kept):
                self._note_output(directory, is_installed=b"pyvenv.cfg" in names)
                continue
            if rules:
                (self._image / os.fsdecode(directory) / _RULES).write_bytes(rules)
            entries = [(path, is_directory) for path, is_directory in entries if path not in self._without]
            self._directories += sum(is_directory for _, is_directory in entries)
            if self._directories > self._most:
                raise TooLarge(f"contains more than {self._most:,} directories")
            for path, is_directory in entries:
                if is_directory:
                    (self._image / os.fsdecode(path)).mkdir()
            found += entries
        return found

    def _note_output(self, path: bytes, *, is_installed: bool) -> None:
        self._left_out.outputs.append(path)
        if is_installed:
            self._ignored.append((path, True))

    def _ignored_of(self, paths: Collection[bytes]) -> frozenset[bytes]:
        if not paths:
            return frozenset()
        given = b"".join(b"./%b\0" % path for path in paths)  # else a colon at the beginning has a meaning of its own
        ignore = b"core.excludesFile=" + os.fsencode(self._image.with_name("ignore"))
        asked = ("--no-literal-pathspecs", "-c", ignore, "check-ignore", "--no-index", "-z", "--stdin")
        listed = self._git.run(*asked, given=given, accepted=(0, 1), work_tree=self._image)
        return frozenset(path.removeprefix(b"./") for path in listed.split(b"\0"))

    def _is_repository(self, directory: bytes) -> bool:
        with suppress(OSError), self._directory_fd(directory) as fd:
            os.stat(_OWN, dir_fd=fd, follow_symlinks=False)
            return True
        return False

    @contextmanager
    def _directory_fd(self, directory: bytes) -> Generator[int]:
        opened = openat.best_opener()(self._root, os.fsdecode(directory) or ".", openat.DIRECTORY_FLAGS)
        with openat.closing(opened) as fd:
            yield fd


def _entries(directory: int, above: bytes) -> Iterator[tuple[bytes, bool]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            is_directory = entry.is_dir(follow_symlinks=False)
            if entry.name != _OWN and (is_directory or entry.is_symlink() or entry.is_file(follow_symlinks=False)):
                yield above + os.fsencode(entry.name), is_directory


def _rules(directory: int) -> bytes:
    try:
        return small_file(_RULES, directory)
    except OSError:
        return b""
