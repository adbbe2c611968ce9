"""A directory as it lies there: its files, links and executable bits, read without following anything.

Each file is opened below a descriptor of its own directory, which was itself opened without following a link. What
changes while it is read gives the old content or the new one, never that of another file.
"""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from massgen_mcp.changes.build_outputs import begins_like_output
from massgen_mcp.secret_files import holds_credential, is_secret
from massgen_mcp.workspace import openat
from massgen_mcp.workspace.guard import Root

REGULAR, EXECUTABLE, LINK = "100644", "100755", "120000"
MIB = 1024 * 1024
_RACY_NS = 100_000_000
"""A file that changed less than this before it was looked at may change again without a new time: file systems note
times in steps of up to 10 ms.
"""


class TreeFile(NamedTuple):
    """A file or link of a tree: its mode as git writes it, and the id of its content."""

    mode: str
    blob: str


TreeFiles = Mapping[bytes, TreeFile]
"""By their paths."""


class TooLarge(Exception):
    """A directory is larger than what is taken. The message says how large it may be."""


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """What is taken of one directory. Beyond `files` or `total_bytes` nothing is; a larger file is left out."""

    files: int = 100_000
    total_bytes: int = 2048 * MIB
    file_bytes: int = 256 * MIB


USUAL_LIMITS = TreeLimits()


@dataclass(frozen=True, slots=True)
class TreeRules:
    """The rules by which files of a directory are in its tree, or are left out."""

    ignore: bytes = b""
    """Lines as in a `.gitignore`, of lower rank than those in the directory."""
    without: Collection[bytes] = ()
    """Paths that are in no tree with all below them, whatever those lines say."""
    kept: Collection[str] = ()
    """Patterns of build outputs that are files like others."""
    above: tuple[str, ...] = ()
    """The names that lead to the directory for a person, where it is a person's: by them files are judged that commonly
    hold secrets.
    """
    limits: TreeLimits = USUAL_LIMITS


USUAL_RULES = TreeRules()


@dataclass(slots=True)
class KnownFiles:
    """What files held when they were last read, by their path. Safe to believe as long as nothing about them changed:
    no program can set the time at which a file was changed last.
    """

    _known: dict[bytes, tuple[int, int, int, int, int, TreeFile]] = field(
        default_factory=dict[bytes, tuple[int, int, int, int, int, TreeFile]]
    )

    @classmethod
    def of(cls, directory: Path, files: Mapping[bytes, TreeFile]) -> "KnownFiles":
        """What is known of a directory that was just laid out, and in which nobody has worked yet."""
        known, now, above = cls(), time.time_ns(), os.fsencode(directory)
        for path, file in files.items():
            with suppress(OSError):
                known.note(path, os.lstat(os.path.join(above, path)), file, now)  # noqa: PTH118 - bytes
        return known

    def find(self, path: bytes, status: os.stat_result) -> TreeFile | None:
        known = self._known.get(path)
        return known[-1] if known is not None and known[:-1] == _stamp(status) else None

    def note(self, path: bytes, status: os.stat_result, file: TreeFile, read_at: int) -> None:
        """`read_at`: when the reading began, in nanoseconds of the clock of the file system."""
        if status.st_ctime_ns < read_at - _RACY_NS:
            self._known[path] = (*_stamp(status), file)
        else:
            self._known.pop(path, None)


def _stamp(status: os.stat_result) -> tuple[int, int, int, int, int]:
    return (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@dataclass(slots=True)
class LeftOut:
    """What of a directory is in no tree, by kind. Paths are relative to it."""

    secret: list[bytes] = field(default_factory=list[bytes])
    """Files that commonly hold secrets, and other names of them."""
    repositories: list[bytes] = field(default_factory=list[bytes])
    """Submodules and other repositories inside."""
    too_large: list[bytes] = field(default_factory=list[bytes])
    unreadable: list[bytes] = field(default_factory=list[bytes])
    special: list[bytes] = field(default_factory=list[bytes])
    """Sockets, pipes, devices, and names that no tree may hold."""
    outputs: list[bytes] = field(default_factory=list[bytes])
    """Build outputs, caches and installed packages that git would not ignore."""


class Found(NamedTuple):
    """One file or link: what it is in a tree; and its content, None where it was known already."""

    path: bytes
    file: TreeFile
    content: bytes | None


def blob_id(content: bytes) -> str:
    """What git calls this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def read_files(
    directory: Path,
    paths: Iterable[bytes],
    left_out: LeftOut,
    rules: TreeRules,
    *,
    known: KnownFiles | None = None,
    judged: Collection[bytes] = (),
) -> Iterator[Found]:
    """The files and links among `paths` that are there, in their order. `judged`: those that are left out if they begin
    as build outputs do.

    Raises `TooLarge`, and `OSError` if the directory itself cannot be opened.
    """
    reader = _Reader(directory, left_out, rules, known or KnownFiles(), judged)
    with reader.opened():
        for path in sorted(set(paths)):
            if reader.is_candidate(path) and (found := reader.read(path)) is not None:
                yield found


class _Reader:
    def __init__(
        self,
        directory: Path,
        left_out: LeftOut,
        rules: TreeRules,
        known: KnownFiles,
        judged: Collection[bytes],
    ) -> None:
        self._directory = directory
        self._judge_name = judged
        self._left_out = left_out
        self._limits = rules.limits
        self._known = known
        self._above = rules.above
        self._files = 0
        self._bytes = 0
        self._concealed: frozenset[str] | None = None
        self._parent: bytes = b""
        self._parent_fd = -1
        self._now = time.time_ns()

    @contextmanager
    def opened(self) -> Generator[None]:
        with ExitStack() as cleanup:
            self._root = os.open(self._directory, openat.DIRECTORY_FLAGS)
            cleanup.callback(os.close, self._root)
            cleanup.callback(self._leave)
            yield

    def is_candidate(self, path: bytes) -> bool:
        names = [os.fsdecode(name) for name in path.split(b"/")]
        if is_secret((*self._above, *names)):
            self._left_out.secret.append(path)
            return False
        if any(is_git_name(name) for name in names):
            self._left_out.special.append(path)
            return False
        return True

    def read(self, path: bytes) -> Found | None:
        status = self._status(path)
        if status is None:
            return None
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(_base_name(path), dir_fd=self._parent_fd)
            return self._counted(Found(path, TreeFile(LINK, blob_id(target)), target), len(target))
        if stat.S_ISDIR(status.st_mode):
            if self._status(path + b"/.git") is not None:
                self._left_out.repositories.append(path)
            return None
        if not stat.S_ISREG(status.st_mode):
            self._left_out.special.append(path)
            return None
        if status.st_size > self._limits.file_bytes:
            self._left_out.too_large.append(path)
            return None
        if (known := self._known.find(path, status)) is not None:
            return self._counted(Found(path, known, None), status.st_size)
        return self._read_content(path)

    def _read_content(self, path: bytes) -> Found | None:
        try:
            fd = os.open(_base_name(path), openat.READING_FLAGS, dir_fd=self._parent_fd)
        except OSError:
            self._left_out.unreadable.append(path)
            return None
        with openat.closing(fd):
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                self._left_out.special.append(path)
                return None
            content = _whole(fd, self._limits.file_bytes)
        if content is None:
            self._left_out.too_large.append(path)
            return None
        if self._is_secret(path, status, content):
            self._left_out.secret.append(path)
            return None
        if path in self._judge_name and begins_like_output(content):
            self._left_out.outputs.append(path)
            return None
        file = TreeFile(EXECUTABLE if status.st_mode & stat.S_IXUSR else REGULAR, blob_id(content))
        self._known.note(path, status, file, self._now)
        return self._counted(Found(path, file, content), len(content))

    def _is_secret(self, path: bytes, status: os.stat_result, content: bytes) -> bool:
        """Whether it holds a credential where its name makes that matter, or is also called like a secret."""
        if holds_credential((*self._above, *(os.fsdecode(name) for name in path.split(b"/"))), content):
            return True
        if status.st_nlink == 1:
            return False
        if self._concealed is None:
            with Root.open(self._directory, "", above=self._above) as root:
                self._concealed = frozenset(root.hidden.paths()[0])
        return os.fsdecode(path) in self._concealed

    def _counted(self, found: Found, size: int) -> Found:
        self._files += 1
        self._bytes += size
        limits = self._limits
        if self._files > limits.files:
            raise TooLarge(f"holds more than {limits.files:,} files")
        if self._bytes > limits.total_bytes:
            raise TooLarge(f"holds more than {limits.total_bytes // MIB:,} MB")
        return found

    def _status(self, path: bytes) -> os.stat_result | None:
        """What is there, without following links; None if nothing is, or if that cannot be seen."""
        try:
            self._enter(path.rpartition(b"/")[0])
            return os.stat(_base_name(path), dir_fd=self._parent_fd, follow_symlinks=False)
        except OSError as error:
            if error.errno not in NOTHING_THERE:
                self._left_out.unreadable.append(path)
            return None

    def _enter(self, parent: bytes) -> None:
        if self._parent_fd >= 0 and parent == self._parent:
            return
        self._leave()
        self._parent_fd = openat.best_opener()(self._root, os.fsdecode(parent) or ".", openat.DIRECTORY_FLAGS)
        self._parent = parent

    def _leave(self) -> None:
        if self._parent_fd >= 0:
            os.close(self._parent_fd)
        self._parent_fd = -1


NOTHING_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV, errno.EMLINK})


def small_file(name: str | Path, directory: int | None = None) -> bytes:
    """A small file, and nothing that only looks like one: anybody may have put it there. Raises `OSError`."""
    with openat.closing(os.open(name, openat.READING_FLAGS, dir_fd=directory)) as fd:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MIB:
            raise OSError(errno.EFBIG, "no small file", str(name))
        return os.read(fd, MIB)


def parents(path: bytes) -> Iterator[bytes]:
    """The directories above a path of a tree, outermost first."""
    end = path.find(b"/")
    while end != -1:
        yield path[:end]
        end = path.find(b"/", end + 1)


def is_git_name(name: str) -> bool:
    """Whether a name is, on some file system, that of a repository's own directory."""
    plain = "".join(letter for letter in name if letter.isprintable()).casefold().rstrip(". ")
    return plain.split(":")[0] in (".git", "git~1")


def _base_name(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def _whole(fd: int, most: int) -> bytes | None:
    """The content of an open file; None if it holds more than `most` bytes."""
    parts: list[bytes] = []
    size = 0
    while part := os.read(fd, MIB):
        size += len(part)
        if size > most:
            return None
        parts.append(part)
    return b"".join(parts)
