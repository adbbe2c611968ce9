"""The one path guard: every file the server touches for an agent is touched through a `Root`.

A root is an open directory descriptor. Paths are validated as names first and then opened below that descriptor without
following any symbolic link, so neither a clever name nor a link swapped in at the wrong moment leads out. Messages name
paths inside the root, never the host's.
"""

import io
import os
import secrets
import stat
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from massgen_mcp.workspace import openat
from massgen_mcp.workspace.hidden import MAX_LOOKED_AT, WHY, Hidden
from massgen_mcp.workspace.names import (
    MAX_PATH_BYTES,
    PathHidden,
    PathMissing,
    PathRefused,
    parts_of,
    problem_with,
    refusal,
    safe_id,
    shown,
)

__all__ = [
    "DirectoryListing",
    "Entry",
    "EntryKind",
    "PathHidden",
    "PathMissing",
    "PathRefused",
    "Root",
    "parts_of",
    "safe_id",
    "shown",
]

EntryKind = Literal["file", "directory", "link", "other"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing below a root. `path` is relative to the root; `size` is in bytes and 0 for all but files."""

    path: str
    kind: EntryKind
    size: int = 0
    executable: bool = False


@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """Entries sorted by path. `cut`: there were more than the limit. `passed_over`: things no valid path can name.
    `hidden`: how many files and directories are hidden.
    """

    entries: tuple[Entry, ...]
    cut: bool = False
    passed_over: tuple[str, ...] = ()
    hidden: int = 0
    ignored: int = 0
    """How many files and directories were left out because `.gitignore` files say so."""


Choose = Callable[[str, DirectoryListing], DirectoryListing]
"""Given a directory and what lies in it, what is to be taken of that."""


def _everything(_directory: str, found: DirectoryListing) -> DirectoryListing:
    return found


class Root:
    """An open directory and the only way to the files below it. Its methods may be called from several threads.

    `name` is what messages put before a path ("" for an agent's own workspace). All methods raise `PathRefused`. In a
    person's directory what commonly holds secrets is hidden; `above` are the names that lead to it, None for any other.
    What is called as one of `without` right below the root is hidden, too.
    """

    def __init__(
        self,
        fd: int,
        name: str,
        opener: openat.Opener,
        above: tuple[str, ...] | None = None,
        without: frozenset[str] = frozenset(),
    ) -> None:
        self.name = name
        self.hidden = Hidden(self._directory, self.open_file, above, without)
        self._fd = fd
        self._opener = opener
        self._lock = threading.Lock()

    @classmethod
    def open(
        cls,
        path: Path,
        name: str,
        *,
        opener: openat.Opener | None = None,
        above: tuple[str, ...] | None = None,
        without: frozenset[str] = frozenset(),
    ) -> Self:
        """Open the host directory `path`, itself no link. Its parents are trusted: no agent may write there."""
        try:
            fd = os.open(path, openat.DIRECTORY_FLAGS)
        except OSError as error:
            raise refusal(name or "workspace", error) from error
        return cls(fd, name, opener or openat.best_opener(), above, without)

    def close(self) -> None:
        """Give the descriptor back; later calls are refused, running ones end as if it were open. Safe to repeat."""
        with self._lock:
            fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open_file(self, rel: str) -> io.FileIO:
        """Open a regular file for reading; anything else is refused without waiting for it."""
        parts = parts_of(rel)
        self._check(parts)
        with self._translated(rel), self._borrowed() as root:
            fd = self._opener(root, "/".join(parts) or ".", _READING)
            mode = os.fstat(fd).st_mode
            if stat.S_ISREG(mode):
                file = io.FileIO(fd, "rb")
                if self.hidden.is_secret_file(fd, parts):
                    file.close()
                    raise self._refused_as_hidden(parts)
                return file
            os.close(fd)
        if stat.S_ISDIR(mode):
            raise self._path_refused(rel, "is a directory")
        raise self._path_refused(rel, "is not a regular file")

    def read_bytes(self, rel: str, max_bytes: int) -> bytes:
        """The whole of a regular file, which is refused when it holds more than `max_bytes`."""
        with self.open_file(rel) as file, self._translated(rel), io.BufferedReader(file) as reader:
            data = reader.read(max_bytes + 1)
        if len(data) > max_bytes:
            raise self._path_refused(rel, f"is larger than {max_bytes} bytes")
        return data

    def write_bytes(self, rel: str, data: bytes, *, executable: bool = False) -> None:
        """Put a regular file there in one step, making parent directories as needed.

        The old file is replaced, never written into, so another name (hard link) of it keeps its content. The new one
        has mode 0600, and is executable if it shall be or the old one was.
        """
        parents, name = self._split(rel)
        self._check([*parents, name], content=True)
        with (
            self._translated(rel),
            self._borrowed() as root,
            openat.closing(openat.make_dirs(root, parents)) as directory,
        ):
            with suppress(FileNotFoundError):
                old = _entry(directory, name, rel)
                if old.kind != "file":
                    raise self._path_refused(rel, _WHY_NOT_WRITABLE[old.kind])
                executable = executable or old.executable
            mode = 0o700 if executable else 0o600
            temporary = f".{secrets.token_hex(8)}.partial"
            fd = os.open(temporary, openat.NEW_FILE_FLAGS, mode, dir_fd=directory)
            try:
                with io.FileIO(fd, "wb") as file, io.BufferedWriter(file) as writer:
                    writer.write(data)
                os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=directory)
                raise

    def stat(self, rel: str) -> Entry:
        """What is there; a link is reported as a link, without looking where it leads."""
        parts = parts_of(rel)
        self._check(parts, content=True)
        if not parts:
            return Entry(".", "directory")
        with self._translated(rel), self._directory(parts[:-1]) as directory:
            return _entry(directory, parts[-1], "/".join(parts))

    def list_dir(self, rel: str, limit: int = 10_000) -> DirectoryListing:
        """The entries of one directory, sorted; the first `limit` of them."""
        parts = parts_of(rel)
        entries: list[Entry] = []
        odd: list[str] = []
        hidden = 0
        self._check(parts)
        with self._translated(rel), self._directory(parts) as directory:
            with os.scandir(directory) as found:
                names = sorted(item.name for item in found)
            for name in names[:limit]:
                path = "/".join((*parts, name))
                if self.hidden.hides([*parts, name]):
                    hidden += 1
                    continue
                if problem_with(name) or len(os.fsencode(path)) > MAX_PATH_BYTES:
                    odd.append(shown(path))
                    continue
                with suppress(FileNotFoundError):
                    entries.append(_entry(directory, name, path))
        shown_ones = [entry for entry in entries if not self.hidden.hides(entry.path.split("/"), content=True)]
        hidden += len(entries) - len(shown_ones)
        return DirectoryListing(tuple(shown_ones), len(names) > limit, tuple(odd), hidden)

    def walk(self, rel: str, limit: int, choose: Choose = _everything) -> DirectoryListing:
        """At most `limit` entries below a directory, those nearest the top; what cannot be entered is passed over.

        `choose` is given the listing of each directory, and returns what is to be taken of it.
        """
        first = choose("/".join(parts_of(rel)), self.list_dir(rel, limit))
        entries, odd, cut, hidden = list(first.entries), list(first.passed_over), first.cut, first.hidden
        pending = deque(entry.path for entry in first.entries if entry.kind == "directory")
        while pending:
            path = pending.popleft()
            try:
                below = choose(path, self.list_dir(path, max(0, limit - len(entries) - len(odd))))
            except PathRefused:
                odd.append(shown(path))
                continue
            entries += below.entries
            odd += below.passed_over
            cut = cut or below.cut
            hidden += below.hidden
            pending += [entry.path for entry in below.entries if entry.kind == "directory"]
        return DirectoryListing(tuple(sorted(entries, key=lambda entry: entry.path)), cut, tuple(odd), hidden)

    def make_link(self, name: str, target: str) -> None:
        """Make a symbolic link right below the root, unless something is there already."""
        with self._translated(name), self._borrowed() as root, suppress(FileExistsError):
            os.symlink(target, name, dir_fd=root)

    def make_dirs(self, rel: str) -> None:
        """Make a directory and its parents, each 0700, where they are missing."""
        parts = parts_of(rel)
        self._check(parts)
        with self._translated(rel), self._borrowed() as root:
            os.close(openat.make_dirs(root, parts))

    def delete(self, rel: str) -> None:
        """Remove a file, a link or a whole directory."""
        parents, name = self._split(rel)
        self._check_all([*parents, name])
        with self._translated(rel), self._directory(parents) as directory:
            openat.remove(directory, name)

    def rename(self, rel: str, to: str) -> None:
        """Give a file, a link or a whole directory another place below this root, where nothing may be yet.

        Parent directories are made as needed.
        """
        parents, name = self._split(rel)
        new_parents, new_name = self._split(to)
        self._check_all([*parents, name])
        self._check([*new_parents, new_name])
        if [*new_parents, new_name][: len(parents) + 1] == [*parents, name]:
            raise self._path_refused(to, f"lies in {shown(self._known_as(rel))} itself")
        with self._translated(rel), self._borrowed() as root, self._directory(parents) as old:
            _entry(old, name, rel)
            with openat.closing(openat.make_dirs(root, new_parents)) as new:
                with suppress(FileNotFoundError):
                    _entry(new, new_name, to)
                    raise self._path_refused(to, "exists already")
                os.rename(name, new_name, src_dir_fd=old, dst_dir_fd=new)

    def _check(self, parts: Sequence[str], *, content: bool = False) -> None:
        if self.hidden.hides(parts, content=content):
            raise self._refused_as_hidden(parts)

    def _check_all(self, parts: Sequence[str]) -> None:
        """As `_check`, for a file or a directory with everything in it."""
        self._check(parts, content=True)
        rel = "/".join(parts)
        if not self.hidden.has_secrets or self.stat(rel).kind != "directory":
            return
        below = self.walk(rel, MAX_LOOKED_AT)
        if below.hidden or below.cut:
            raise PathHidden(f"{shown(self._known_as(rel))}: holds a file that {WHY}")

    def _refused_as_hidden(self, parts: Sequence[str]) -> PathHidden:
        return PathHidden(f"{shown(self._known_as('/'.join(parts)))}: {WHY}")

    def _split(self, rel: str) -> tuple[list[str], str]:
        parts = parts_of(rel)
        if not parts:
            raise self._path_refused(rel, "is the directory itself")
        return parts[:-1], parts[-1]

    @contextmanager
    def _borrowed(self) -> Generator[int, None, None]:
        """A descriptor of one's own, so that `close` in another thread cannot turn it into some other file."""
        with self._lock:
            if self._fd < 0:
                raise PathRefused(f"{self.name or 'workspace'}: is no longer open")
            fd = os.dup(self._fd)
        with openat.closing(fd):
            yield fd

    @contextmanager
    def _directory(self, parts: list[str]) -> Generator[int, None, None]:
        with self._borrowed() as root:
            fd = self._opener(root, "/".join(parts) or ".", openat.DIRECTORY_FLAGS)
            with openat.closing(fd):
                yield fd

    @contextmanager
    def _translated(self, rel: str) -> Generator[None, None, None]:
        try:
            yield
        except OSError as error:
            raise refusal(self._known_as(rel), error) from error

    def _path_refused(self, rel: str, why: str) -> PathRefused:
        return PathRefused(f"{shown(self._known_as(rel))}: {why}")

    def _known_as(self, rel: str) -> str:
        return f"{self.name}/{rel}" if self.name else rel


_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WHY_NOT_WRITABLE: dict[EntryKind, str] = {
    "directory": "is a directory",
    "link": "is a symbolic link, these are not followed",
    "other": "is not a regular file",
}


def _entry(dir_fd: int, name: str, path: str) -> Entry:
    found = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    match stat.S_IFMT(found.st_mode):
        case stat.S_IFREG:
            return Entry(path, "file", found.st_size, bool(found.st_mode & stat.S_IXUSR))
        case stat.S_IFDIR:
            return Entry(path, "directory")
        case stat.S_IFLNK:
            return Entry(path, "link")
        case _:
            return Entry(path, "other")
