"""One agent's directory, and the read-only places it can see beside its own.

An agent names files by plain relative paths. `peers/NAME/...` are snapshots of other agents' answers, under the neutral
names of its ballot; `context/NAME/...` are the paths the user gave; where agents may start runs, `runs/ID/...` are the
directories of those. All exist only as names here: whatever an agent makes at those places of its own directory stays
hidden.
"""

import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Self

from massgen_mcp.secret_files import is_secret
from massgen_mcp.workspace.gitignore import Deadline, Ignored
from massgen_mcp.workspace.guard import DirectoryListing, Entry, PathHidden, PathRefused, Root, parts_of, safe_id, shown

SHELVES = ("context", "peers")
"""The top-level names that are not the agent's own."""
RUNS = "runs"
"""One more, where agents may start runs."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A read-only place at `name` (such as `peers/agent2`). With `file` set it is that one file of the root."""

    name: str
    root: Root
    host: Path
    """Where it lies on this machine."""
    file: str | None = None


class ResolvedPath(NamedTuple):
    """Where a path of the agent leads."""

    root: Root
    rel: str


class Workspace:
    """What one agent sees: its own writable `root` and the read-only `mounts`. Safe to use from several threads."""

    def __init__(self, root: Root, context: tuple[Mount, ...] = (), place: Path | None = None) -> None:
        """`place`: where the root lies on this machine."""
        self.root = root
        self._context = context
        self._place = place
        self._peers: tuple[Mount, ...] = ()
        self._runs: tuple[Mount, ...] = ()
        self.shelves: tuple[str, ...] = SHELVES
        """The top-level names that are not the agent's own."""

    @classmethod
    def create(cls, path: Path, *, context: Sequence[Path] = ()) -> Self:
        """Make the directory, mode 0700 as its missing parents, and open it. Raises `FileExistsError`."""
        for parent in reversed(path.parents):
            if not parent.exists():
                parent.mkdir(mode=0o700, exist_ok=True)
        path.mkdir(mode=0o700)
        return cls.open(path, context=context)

    @classmethod
    def create_or_open(cls, path: Path, *, context: Sequence[Path] = ()) -> Self:
        """The directory as it is, or a new one."""
        try:
            return cls.create(path, context=context)
        except FileExistsError:
            return cls.open(path, context=context)

    @classmethod
    def open(cls, path: Path, *, context: Sequence[Path] = ()) -> Self:
        """Open a directory that is there. Raises `PathRefused` if it or one of `context` cannot be opened."""
        root = Root.open(path, "")
        mounts: list[Mount] = []
        try:
            for given, name in zip(context, unique_names(context), strict=True):
                mounts.append(_context_mount(given, name))
        except BaseException:
            _close(mounts)
            root.close()
            raise
        return cls(root, tuple(mounts), path)

    @property
    def mounts(self) -> tuple[Mount, ...]:
        return (*self._context, *self._peers, *self._runs)

    def set_peers(self, peers: Mapping[str, Path]) -> None:
        """Show these snapshots instead of the earlier ones. On `PathRefused` the earlier ones stay."""
        earlier, self._peers = self._peers, _shelved("peers", peers)
        _close(earlier)

    def set_runs(self, runs: Mapping[str, Path], *, without: Collection[str] = ()) -> None:
        """Show these directories of runs, by their ids, but for the names `without` right below them, and no files that
        commonly hold secrets. From the first call on `runs` is no place of the agent's own. As `set_peers` otherwise.
        """
        self.shelves = (*SHELVES, RUNS)
        mounts = _shelved(RUNS, runs, above=(), without=frozenset(without))
        earlier, self._runs = self._runs, mounts
        _close(earlier)

    def close(self) -> None:
        """Close every root. Safe to repeat."""
        self.root.close()
        _close(self.mounts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def make_relative(self, virtual: str) -> str:
        """Return a path as agents name it, for an absolute one that leads to the same: as commands see the workspace,
        or where it, or a directory of the caller, lies on this machine. What is none of these stays as it is.
        """
        if not virtual.startswith("/"):
            return virtual
        path = PurePosixPath(virtual)
        if path.is_relative_to("/workspace"):
            return str(path.relative_to("/workspace"))
        if path.parts[1:2] and path.parts[1] in self.shelves:
            return virtual[1:]
        if self._place is not None and path.is_relative_to(self._place):
            return str(path.relative_to(self._place))
        for mount in self._context:
            if mount.file is None and path.is_relative_to(mount.host):
                name = mount.name.partition("/")[2]
                if not self._has_directory(name):
                    name = mount.name
                return str(PurePosixPath(name) / path.relative_to(mount.host))
            if mount.file is not None and virtual == str(mount.host):
                return mount.name
        return virtual

    def resolve(self, virtual: str) -> ResolvedPath:
        """Where `virtual` leads. Raises `PathRefused`; whether something is there is the root's to say."""
        virtual = self.make_relative(virtual)
        parts = parts_of(virtual)
        if not parts or parts[0] not in self.shelves:
            return ResolvedPath(self.root, "/".join(parts) or ".")
        mount = self._mount(parts)
        rest = parts[2:]
        if mount.file is None:
            return ResolvedPath(mount.root, "/".join(rest) or ".")
        if rest:
            raise PathRefused(f"{shown(virtual)}: {mount.name} is a file")
        return ResolvedPath(mount.root, mount.file)

    def resolve_writable(self, virtual: str) -> ResolvedPath:
        """As `resolve`, for a path the agent wants to change."""
        virtual = self.make_relative(virtual)
        parts = parts_of(virtual)
        if parts and parts[0] in self.shelves:
            instead = "write a copy under another name"
            if parts[0] == "context" and len(parts) > 1 and self._has_directory(parts[1]):
                instead = f"change your own copy, {'/'.join(parts[1:])}"
            raise PathRefused(f"{shown(virtual)}: {'/'.join(parts[:2])} is read-only; {instead}")
        return self.resolve(virtual)

    def listing(
        self, virtual: str, *, recursive: bool, limit: int, without_ignored: Deadline | None = None
    ) -> DirectoryListing:
        """What lies at `virtual`, under the agent's names for it. A file lists itself.

        "." shows the shelves that hold something, but never their contents. With `without_ignored` a recursive listing
        leaves out what `.gitignore` files say; it raises `TookTooLong` if it is not done by then.
        """
        virtual = self.make_relative(virtual)
        parts = parts_of(virtual)
        if len(parts) == 1 and parts[0] in self.shelves:
            return self._shelf(parts[0], recursive=recursive, limit=limit, without_ignored=without_ignored)
        place = self.resolve(virtual)
        prefix = "/".join(parts[:2]) if parts and parts[0] in self.shelves else ""
        entry = place.root.stat(place.rel)
        if entry.kind != "directory":
            return DirectoryListing((replace(entry, path="/".join(parts)),))
        if not recursive:
            found = place.root.list_dir(place.rel, limit)
        elif without_ignored is None:
            found = place.root.walk(place.rel, limit)
        else:
            ignored = Ignored(place.root, place.rel, without_ignored)
            found = replace(place.root.walk(place.rel, limit, ignored), ignored=ignored.left_out)
        entries = [replace(entry, path=f"{prefix}/{entry.path}" if prefix else entry.path) for entry in found.entries]
        if not parts:
            entries = [entry for entry in entries if entry.path.split("/")[0] not in self.shelves]
            entries += [Entry(shelf, "directory") for shelf in self.shelves if any(self._on(shelf))]
        return replace(found, entries=tuple(sorted(entries, key=lambda entry: entry.path)))

    def _shelf(self, shelf: str, *, recursive: bool, limit: int, without_ignored: Deadline | None) -> DirectoryListing:
        entries: list[Entry] = []
        odd: list[str] = []
        cut, hidden, ignored = False, 0, 0
        for mount in self._on(shelf):
            if mount.file is not None:
                try:
                    entries.append(replace(mount.root.stat(mount.file), path=mount.name))
                except PathHidden:
                    hidden += 1
                continue
            entries.append(Entry(mount.name, "directory"))
            if recursive:
                room = max(0, limit - len(entries))
                below = self.listing(mount.name, recursive=True, limit=room, without_ignored=without_ignored)
                entries += below.entries
                odd += below.passed_over
                cut = cut or below.cut
                hidden += below.hidden
                ignored += below.ignored
        return DirectoryListing(tuple(entries[:limit]), cut or len(entries) > limit, tuple(odd), hidden, ignored)

    def _on(self, shelf: str) -> Iterator[Mount]:
        return (mount for mount in self.mounts if mount.name.startswith(f"{shelf}/"))

    def _has_directory(self, name: str) -> bool:
        try:
            return self.root.stat(name).kind == "directory"
        except PathRefused:
            return False

    def _mount(self, parts: list[str]) -> Mount:
        wanted = "/".join(parts[:2])
        for mount in self.mounts:
            if mount.name == wanted:
                return mount
        names = ", ".join(mount.name for mount in self._on(parts[0])) or "nothing"
        raise PathRefused(f"{shown(wanted)}: no such read-only path; there is {names}")


def _shelved(
    shelf: str,
    places: Mapping[str, Path],
    *,
    above: tuple[str, ...] | None = None,
    without: frozenset[str] = frozenset(),
) -> tuple[Mount, ...]:
    mounts: list[Mount] = []
    try:
        for name, path in sorted(places.items()):
            virtual = f"{shelf}/{safe_id(name, shelf)}"
            mounts.append(Mount(virtual, Root.open(path, virtual, above=above, without=without), path))
    except BaseException:
        _close(mounts)
        raise
    return tuple(mounts)


def unique_names(paths: Sequence[Path]) -> list[str]:
    """What agents call the paths of the user: below `context`, and, their copies, beside it."""
    names = [*SHELVES, RUNS]
    for path in paths:
        base = path.name or "root"
        name, number = base, 1
        while name in names:
            number += 1
            name = f"{base}-{number}"
        names.append(name)
    return names[len(SHELVES) + 1 :]


def _context_mount(given: Path, name: str) -> Mount:
    """Open a path of the user, who may have given a link; below it none is followed.

    A file that commonly holds secrets is there only if it was given by its own name: a directory that holds it, or a
    link of another name, does not name it.
    """
    parts_of(name)
    virtual = f"context/{name}"
    try:
        path = given.resolve(strict=True)
        mode = path.stat().st_mode
    except OSError as error:
        raise PathRefused(f"{shown(virtual)}: cannot be opened ({type(error).__name__})") from error
    if stat.S_ISDIR(mode):
        return Mount(virtual, Root.open(path, virtual, above=path.parts), path)
    if stat.S_ISREG(mode):
        named = is_secret(given.parts) or given.name.casefold() == path.name.casefold()
        above = None if named else path.parent.parts
        return Mount(virtual, Root.open(path.parent, "context", above=above), path, path.name)
    raise PathRefused(f"{shown(virtual)}: is neither a file nor a directory")


def _close(mounts: Sequence[Mount]) -> None:
    for mount in mounts:
        mount.root.close()
