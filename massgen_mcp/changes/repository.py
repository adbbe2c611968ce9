"""Trees of files in a private repository: written from a directory, laid out in another, compared and merged.

The bytes of a file are its content: no line ending is converted and no filter is applied, so what is laid out is what
was taken. Every method blocks; call them from a worker thread. They may run at the same time.
"""

import os
import re
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sized
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Generic, Literal, NewType, TypeVar

from massgen_mcp.changes.build_outputs import is_kept
from massgen_mcp.changes.contents import reading, store
from massgen_mcp.changes.files import (
    LINK,
    USUAL_RULES,
    Found,
    KnownFiles,
    LeftOut,
    TreeFile,
    TreeFiles,
    TreeRules,
    read_files,
)
from massgen_mcp.changes.git import Git
from massgen_mcp.changes.untracked import untracked

ChangeKind = Literal["added", "deleted", "modified", "renamed"]
"""`modified`: in its content, its mode or its type. A renamed file may be modified, too."""

_NOTHING = "000000"
_MAX_REMEMBERED = 50_000
"""Files of trees that were listed, or that differ between two trees."""
_MAX_INDEX_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that two trees do not have in common. `added` and `removed` are lines; None for a binary file."""

    path: bytes
    kind: ChangeKind
    before: TreeFile | None
    after: TreeFile | None
    added: int | None
    removed: int | None
    earlier_path: bytes | None = None
    """Where a renamed file was before."""


def parse_changes(printed: bytes) -> tuple[FileChange, ...]:
    """What `git diff-tree -r -z --raw --numstat` printed, sorted by path."""
    raw: list[tuple[bytes, bytes | None, TreeFile | None, TreeFile | None]] = []
    counts: dict[bytes, tuple[int | None, int | None]] = {}
    parts = iter(printed.split(b"\0"))
    for part in parts:
        if part.startswith(b":"):
            before_mode, after_mode, before, after, status = part[1:].decode().split(" ")
            first = next(parts)
            path, earlier = (next(parts), first) if status[0] in "RC" else (first, None)
            raw.append((path, earlier, _file(before_mode, before), _file(after_mode, after)))
        elif part:
            added, removed, path = part.split(b"\t", 2)
            if not path:  # of a renamed file, whose names follow
                next(parts)
                path = next(parts)
            counts[path] = _line_count(added), _line_count(removed)
    found = [
        FileChange(path, _kind(earlier, before, after), before, after, *counts.get(path, (0, 0)), earlier)
        for path, earlier, before, after in raw
    ]
    return tuple(sorted(found, key=lambda change: change.path))


def _kind(earlier: bytes | None, before: TreeFile | None, after: TreeFile | None) -> ChangeKind:
    if earlier is not None:
        return "renamed"
    if before is None:
        return "added"
    return "deleted" if after is None else "modified"


def _file(mode: str, blob: str) -> TreeFile | None:
    return None if mode == _NOTHING else TreeFile(mode, blob)


def _line_count(count: bytes) -> int | None:
    return None if count == b"-" else int(count)


Result = TypeVar("Result", bound=Sized)

TreeId = NewType("TreeId", str)
"""What git calls a tree."""
EMPTY_TREE = TreeId("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

_COMPARED = ("diff-tree", "-r", "-M", "-l2000", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index")
_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_CONFLICT = re.compile(r"CONFLICT \((.+?)\)")
_MOVED_ASIDE = re.compile(rb"~[0-9a-f]{40}(_\d+)?$")
"""What git adds to the name of a file that something else has taken the place of."""
_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\n"


@dataclass(frozen=True, slots=True)
class Written:
    """A tree that was written from a directory."""

    tree: TreeId
    files: int
    left_out: LeftOut
    ignored: tuple[bytes, ...] = ()
    """Directories that git ignores, or that ignore themselves."""
    compiled: tuple[bytes, ...] = ()
    """Libraries beside the files that are in no tree."""
    lfs_pointers: tuple[bytes, ...] = ()
    """Files that Git LFS keeps somewhere else, and that are not on this machine."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines of a file before a change, and those that stand there after it."""

    before: slice
    after: slice


@dataclass(frozen=True, slots=True)
class Conflict:
    """A path on which two trees cannot be merged, and why: as `content`, `modify/delete`, `binary`."""

    path: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Merged:
    """`tree` is the outcome; with `conflicts` it holds markers in the files that they name."""

    tree: TreeId
    conflicts: tuple[Conflict, ...] = ()


class PrivateRepository:
    """A bare repository in a run's directory.

    An id names the same content for ever, so what git said of trees is remembered, up to `_MAX_REMEMBERED` files: the
    agents of a run have the same answers compared, laid out and checked again and again.
    """

    def __init__(self, directory: Path) -> None:
        self._git = Git(directory)
        self.directory = directory
        self._files = _Results[TreeFiles](_MAX_REMEMBERED)
        self._directories = _Results[Mapping[bytes, TreeId]](_MAX_REMEMBERED)
        self._changes = _Results[tuple[FileChange, ...]](_MAX_REMEMBERED)
        self._trees = _Results[TreeId](_MAX_REMEMBERED)
        self._indexes = _Results[bytes](_MAX_INDEX_BYTES)
        self._owned: set[str] = set()

    @classmethod
    def create(cls, directory: Path, *, alternates: Iterable[Path] = ()) -> "PrivateRepository":
        """A new one; what lies in the object stores `alternates` is not stored again, and never changed."""
        Git.create(directory, alternates=alternates)
        return cls(directory)

    # -- writing ------------------------------------------------------------------------------------------------------

    def write_tree(
        self,
        directory: Path,
        *,
        like: Iterable[TreeId] = (),
        tracked: Iterable[bytes] = (),
        rules: TreeRules = USUAL_RULES,
        known: KnownFiles | None = None,
        all_new: bool = True,
    ) -> Written:
        """The tree of a directory: everything in it that git would not ignore, and, ignored or not, the files that are
        `tracked` or in a tree `like` it, as the rules have it. `all_new`: files that are neither tracked nor in a tree
        `like` it are new, so that a build output among them is left out also if only its content shows it.

        A file that cannot be read is taken from the first tree `like` it. Raises `GitFailed`, `TooLarge`, `OSError`.
        """
        before: dict[bytes, TreeFile] = {}
        for tree in like:
            before = {**self.files(tree), **before}
        named = {*before, *tracked}
        left_out, pointers = LeftOut(), list[bytes]()
        others = untracked(self._git, directory, named, rules, left_out)
        judged = frozenset(one for one in others.files if all_new and not is_kept(one, rules.kept))
        found = read_files(directory, [*named, *others.files], left_out, rules, known=known, judged=judged)
        files = store(self._git, _note_pointers(found, pointers))
        for path in (*left_out.unreadable, *left_out.too_large):
            if path in before:
                files[path] = before[path]
        return Written(
            self.tree_of(files), len(files), left_out, tuple(others.ignored), tuple(others.compiled), tuple(pointers)
        )

    def tree_of(self, files: Mapping[bytes, TreeFile]) -> TreeId:
        """The tree of these files, whose contents are there."""
        lines = b"".join(f"{file.mode} {file.blob}\t".encode() + path + b"\0" for path, file in files.items())
        return self._write_once(lines, self._write_index)

    def combined(self, trees: Mapping[str, TreeId]) -> TreeId:
        """One tree with each of these as a directory of its name."""
        lines = (f"040000 tree {tree}\t{name}\0".encode("utf-8", "surrogateescape") for name, tree in trees.items())
        return self._write_once(b"".join(lines), lambda given: _id(self._git.run("mktree", "-z", given=given)))

    def put(self, content: bytes) -> str:
        """Store the content of a file. Returns its id."""
        return self._git.run("hash-object", "-w", "--stdin", given=content).decode().strip()

    def own(self, objects: Iterable[str]) -> None:
        """Keep these objects here, too, whatever becomes of the alternates."""
        wanted = [one for one in dict.fromkeys(objects) if one not in self._owned]
        if wanted and (self.directory / "objects" / "info" / "alternates").exists():
            given = "".join(f"{one}\n" for one in wanted).encode()
            self._git.run("pack-objects", "--quiet", "--window=0", "objects/pack/pack", given=given)
            self._owned.update(wanted)

    # -- reading ------------------------------------------------------------------------------------------------------

    def files(self, tree: TreeId) -> TreeFiles:
        """All files and links of a tree, by their path."""
        return self._files.get(tree, lambda: MappingProxyType(self._list_files(tree)))

    def _list_files(self, tree: TreeId) -> dict[bytes, TreeFile]:
        return {path: TreeFile(mode, blob) for mode, _, blob, path in self._list_entries(tree, "-r")}

    def part(self, tree: TreeId, name: str) -> TreeId:
        """The directory `name` right below a tree; the empty tree if it is not there."""
        return self._directories.get(tree, lambda: self._list_directories(tree)).get(os.fsencode(name), EMPTY_TREE)

    def _list_directories(self, tree: TreeId) -> dict[bytes, TreeId]:
        return {path: TreeId(name) for _, kind, name, path in self._list_entries(tree) if kind == "tree"}

    def structure(self, tree: TreeId) -> Iterator[str]:
        """Ids of a tree, of all directories in it, and of where its links lead."""
        yield tree
        for mode, kind, name, _ in self._list_entries(tree, "-r", "-t"):
            if kind == "tree" or mode == LINK:
                yield name

    def _list_entries(self, tree: TreeId, *options: str) -> Iterator[tuple[str, str, str, bytes]]:
        """Yield mode, kind, id and path of each entry of a tree."""
        for record in _records(self._git.run("ls-tree", *options, "-z", "--full-tree", tree)):
            about, _, path = record.partition(b"\t")
            mode, kind, name = about.decode().split(" ")
            yield mode, kind, name, path

    def content(self, file: TreeFile) -> bytes:
        """Of a file, or where a link leads."""
        return self._git.run("cat-file", "blob", file.blob)

    def reading(self) -> AbstractContextManager[Callable[[TreeFile], bytes]]:
        """Reads the contents of files one after the other, quicker than `content`."""
        return reading(self._git)

    def check_out(self, tree: TreeId, into: Path) -> None:
        """Lay the files of a tree out in the directory `into`, which is made if it is not there. What is there already
        is kept, unless a file of the tree has its name.
        """
        into.mkdir(mode=0o700, exist_ok=True)
        entries = self._indexes.get(tree, lambda: self._make_index(tree))
        with self._temporary_index() as index:
            index.write_bytes(entries)
            self._git.run("checkout-index", "--all", "--force", "--quiet", index=index, work_tree=into)

    def _make_index(self, tree: TreeId) -> bytes:
        with self._temporary_index() as index:
            self._git.run("read-tree", tree, index=index)
            return index.read_bytes()

    def changes(self, before: TreeId, after: TreeId) -> tuple[FileChange, ...]:
        """What differs between two trees, file by file, sorted by path."""
        return self._changes.get((before, after), lambda: self._compare(before, after))

    def _compare(self, before: TreeId, after: TreeId) -> tuple[FileChange, ...]:
        if before == after:
            return ()
        return parse_changes(self._git.run(*_COMPARED, "-z", "--raw", "--numstat", before, after))

    def write_patch(self, before: TreeId, after: TreeId, into: Path) -> int:
        """Write the difference of two trees to the file `into`, as `git apply` takes it: texts, binary files, modes,
        renames. Returns its size in bytes.
        """
        return self._git.write(*_COMPARED, "--patch", "--binary", before, after, into=into)

    @contextmanager
    def borrowing(self, other: "PrivateRepository") -> Generator[None]:
        """While what lies in another repository can be read here, too. What is to stay is made `own`."""
        file = self.directory / "objects" / "info" / "alternates"
        before = file.read_bytes() if file.exists() else None
        file.write_bytes((before or b"") + os.fsencode(other.directory / "objects") + b"\n")
        try:
            yield
        finally:
            if before is None:
                file.unlink()
            else:
                file.write_bytes(before)

    def hunks(self, before: TreeFile, after: TreeFile, *, around: int = 3) -> list[Hunk]:
        """How two texts differ: the hunks of a patch with so many lines around each change, in its order."""
        trees = (self.tree_of({b"text": file}) for file in (before, after))
        found = _HUNK.findall(self._git.run(*_COMPARED, "--patch", f"-U{around}", *trees))
        return [Hunk(_range(first, count), _range(second, added)) for first, count, second, added in found]

    def merge(self, base: TreeId, ours: TreeId, theirs: TreeId) -> Merged:
        """What becomes of `ours` with all that differs between `base` and `theirs`."""
        begin = self._commit(base)
        code, out = self._git.outcome(
            *("merge-tree", "--write-tree", "-z", "--messages", "--allow-unrelated-histories"),
            *(self._commit(ours, begin), self._commit(theirs, begin)),
            accepted=(0, 1),
        )
        tree, _, rest = out.partition(b"\0")
        return Merged(TreeId(tree.decode()), () if code == 0 else _conflicts(rest))

    def packed_commit(self, commit: bytes, *, without: str) -> tuple[str, bytes]:
        """The id of a commit of this text, and a pack with all that it needs beyond the commit `without`."""
        made = _id(self._git.run("hash-object", "-t", "commit", "-w", "--stdin", given=commit))
        wanted = f"{made}\n^{without}\n".encode()
        return made, self._git.run("pack-objects", "--revs", "--stdout", "-q", given=wanted)

    def write_history(self, tree: TreeId, into: Path) -> str:
        """Put a tree into the parts of another repository: one commit with all that it needs as a pack, and an index.
        Returns the id of the commit.
        """
        commit = self._commit(tree, says="The files as the run began")
        pack = into / "objects" / "pack" / "pack"
        self._git.run("pack-objects", "--revs", "--quiet", "--window=0", pack, given=f"{commit}\n".encode())
        self._git.run("read-tree", tree, index=into / "index")
        return commit

    # -- the rest -----------------------------------------------------------------------------------------------------

    def _write_once(self, lines: bytes, write: Callable[[bytes], TreeId]) -> TreeId:
        """Write a tree that these lines name, unless that was done and it is here."""
        key = sha256(lines).digest()
        tree = self._trees.recall(key)
        if tree is None or not self._holds(tree):  # an alternate held it, and may have dropped it
            tree = self._trees.keep(key, write(lines))
        return tree

    def _write_index(self, lines: bytes) -> TreeId:
        """Write the tree of the files that these lines of an index name."""
        with self._temporary_index() as index:
            self._git.run("update-index", "-z", "--replace", "--index-info", given=lines, index=index)
            return _id(self._git.run("write-tree", "--missing-ok", index=index))

    def _holds(self, tree: TreeId) -> bool:
        return (self.directory / "objects" / tree[:2] / tree[2:]).exists()

    def _commit(self, tree: TreeId, *parents: str, says: str = "massgen") -> str:
        of = [argument for parent in parents for argument in ("-p", parent)]
        return _id(self._git.run("commit-tree", tree, *of, "-m", says))

    @contextmanager
    def _temporary_index(self) -> Generator[Path]:
        """The name of an index that is not there yet, in a directory that goes with the block."""
        with tempfile.TemporaryDirectory(prefix="index.", dir=self.directory) as directory:
            yield Path(directory) / "index"


class _Results(Generic[Result]):
    """Results that were computed from ids, the latest of them, with up to `most` items in all. Safe from several
    threads.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._items = 0
        self._kept: OrderedDict[Hashable, Result] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        result = self.recall(key)
        return self.keep(key, compute()) if result is None else result

    def recall(self, key: Hashable) -> Result | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, key: Hashable, result: Result) -> Result:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = result
                self._items += len(result)
            while self._items > self._most:
                _, dropped = self._kept.popitem(last=False)
                self._items -= len(dropped)
        return result


def _note_pointers(found: Iterable[Found], pointers: list[bytes]) -> Iterator[Found]:
    """Yield these files, and add the paths of those to `pointers` that Git LFS keeps somewhere else."""
    for one in found:
        if one.content is not None and one.content.startswith(_LFS_POINTER):
            pointers.append(one.path)
        yield one


def _conflicts(printed: bytes) -> tuple[Conflict, ...]:
    """What `git merge-tree -z --messages` printed after the tree: entries of files, an empty one, then messages. Of
    several about one path the first says what is at the bottom of it.
    """
    entries, _, messages = (b"", b"", printed[1:]) if printed.startswith(b"\0") else printed.partition(b"\0\0")
    reasons: dict[bytes, str] = {}
    parts = iter(messages.split(b"\0"))
    for count in parts:
        if not count:
            break
        paths = [_MOVED_ASIDE.sub(b"", next(parts)) for _ in range(int(count))]
        kind, text = (next(parts).decode(errors="replace") for _ in range(2))
        if reason := _CONFLICT.match(text) or _CONFLICT.match(kind):
            reasons = dict.fromkeys(paths, reason[1]) | reasons
    named = (_MOVED_ASIDE.sub(b"", entry.split(b"\t", 1)[1]) for entry in _records(entries))
    reasons = dict.fromkeys(named, "content") | reasons
    return tuple(Conflict(path, reason) for path, reason in sorted(reasons.items()))


def _range(first: bytes, count: bytes) -> slice:
    """Git names the line before where there are none."""
    lines = int(count or 1)
    begin = int(first) - (lines > 0)
    return slice(begin, begin + lines)


def _records(printed: bytes) -> Iterator[bytes]:
    return (record for record in printed.split(b"\0") if record)


def _id(printed: bytes) -> TreeId:
    return TreeId(printed.decode().strip())
