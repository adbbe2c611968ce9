"""What is hidden from agents: files that commonly hold secrets, unless a person names the very file, and names that are
left out.

The one rule for everything of a person's that agents may read or write. A file is judged by its path, every component
of it, in any case of letters; some are hidden only if a credential stands in them. It is looked at only through the
guard, which hands in how it is opened.
"""

import io
import os
import stat
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from massgen_mcp.secret_files import (
    EXAMINED_BYTES,
    depends_on_content,
    holds_credential,
    is_from_package,
    is_secret,
)
from massgen_mcp.workspace import openat
from massgen_mcp.workspace.names import PathHidden, PathRefused

MAX_LOOKED_AT = 200_000
"""Entries of a directory, in a search for all that is hidden in it."""


WHY = (
    "is hidden, such files commonly hold secrets; continue without it (the caller can allow it by naming this "
    "very file among the context paths)"
)


class Hidden:
    """`directory` opens one by the components of its path, `open_file` a regular file, and refuses a hidden one.
    `above` and `without` as `Root` has them.
    """

    def __init__(
        self,
        directory: Callable[[list[str]], AbstractContextManager[int]],
        open_file: Callable[[str], io.FileIO],
        above: tuple[str, ...] | None,
        without: frozenset[str],
    ) -> None:
        self._directory = directory
        self._open_file = open_file
        self._above = above
        self._without = without
        self._secret_files: frozenset[tuple[int, int]] | None = None

    @property
    def has_secrets(self) -> bool:
        """Whether the directory is a person's, in which secrets are hidden."""
        return self._above is not None

    def hides(self, parts: Sequence[str], *, content: bool = False) -> bool:
        """Whether the path is hidden by its names, or, where that is to be looked at, for what stands in the file."""
        if parts and parts[0] in self._without:
            return True
        if self._above is None:
            return False
        whole = (*self._above, *parts)
        if is_secret(whole):
            return True
        if not content or not depends_on_content(whole):
            return False
        try:
            self._open_file("/".join(parts)).close()
        except PathHidden:
            return True
        except PathRefused:
            return False  # no regular file, or none that can be read
        return False

    def is_secret_file(self, fd: int, parts: Sequence[str]) -> bool:
        """Whether an open file holds a credential where its name makes that matter, or is also called like a secret."""
        if self._above is None:
            return False
        whole = (*self._above, *parts)
        if depends_on_content(whole) and holds_credential(whole, os.pread(fd, EXAMINED_BYTES, 0)):
            return True
        return self._has_secret_name(os.fstat(fd))

    def paths(self) -> tuple[tuple[str, ...], bool]:
        """The paths of everything hidden below the directory, and of its sockets, for whoever shows it in another way;
        and whether that is all: no more than `MAX_LOOKED_AT` entries are looked at.
        """
        found: list[str] = []
        pending: deque[list[str]] = deque([[]])
        seen = 0
        while pending:
            parts = pending.popleft()
            with suppress(OSError), self._directory(parts) as directory, os.scandir(directory) as items:
                for item in items:
                    seen += 1
                    if seen > MAX_LOOKED_AT:
                        return tuple(found), False
                    path = [*parts, item.name]
                    if self._conceals(path, item):
                        found.append("/".join(path))
                    elif item.is_dir(follow_symlinks=False):
                        pending.append(path)
        return tuple(found), True

    def _conceals(self, parts: list[str], item: "os.DirEntry[str]") -> bool:
        if self.hides(parts, content=True):
            return not is_from_package(Path(*(self._above or ()), *parts))
        if item.is_dir(follow_symlinks=False) or item.is_symlink():
            return False
        found = item.stat(follow_symlinks=False)
        return stat.S_ISSOCK(found.st_mode) or (self._above is not None and self._has_secret_name(found))

    def _has_secret_name(self, found: os.stat_result) -> bool:
        """Whether another name of this file is hidden."""
        return found.st_nlink > 1 and (found.st_dev, found.st_ino) in self._other_names()

    def _other_names(self) -> frozenset[tuple[int, int]]:
        """Device and inode of the hidden files below this directory, looked up once."""
        if self._secret_files is None:
            found: set[tuple[int, int]] = set()
            pending: deque[list[str]] = deque([[]])
            seen = 0
            while pending and seen < MAX_LOOKED_AT:
                parts = pending.popleft()
                with suppress(OSError), self._directory(parts) as directory, os.scandir(directory) as items:
                    for item in items:
                        seen += 1
                        path = [*parts, item.name]
                        if item.is_dir(follow_symlinks=False):
                            pending.append(path)
                        elif self._is_secret_entry(directory, path, item):
                            status = item.stat(follow_symlinks=False)
                            found.add((status.st_dev, status.st_ino))
            self._secret_files = frozenset(found)
        return self._secret_files

    def _is_secret_entry(self, directory: int, path: list[str], item: "os.DirEntry[str]") -> bool:
        """Whether a file is hidden by its names, or by what stands in it and can be seen under another name, too."""
        whole = (*(self._above or ()), *path)
        if is_secret(whole):
            return True
        if not depends_on_content(whole) or item.stat(follow_symlinks=False).st_nlink == 1:
            return False
        try:
            with openat.closing(os.open(item.name, openat.READING_FLAGS, dir_fd=directory)) as fd:
                return holds_credential(whole, os.pread(fd, EXAMINED_BYTES, 0))
        except OSError:
            return True
