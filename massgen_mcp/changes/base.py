"""The base: the user's directories as they are when a run begins, taken once.

What is taken is the present working tree: tracked files with all that is staged and not staged, and untracked files
that are not ignored. Of a directory that lies in no repository it is everything in it.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from massgen_mcp.changes.files import TooLarge, TreeRules
from massgen_mcp.changes.git import GitFailed
from massgen_mcp.changes.repository import PrivateRepository, TreeId, Written
from massgen_mcp.changes.user_repository import UserRepository

_OWN = ".massgen"
OWN_FILES = b"".join(b"**/%b/%b\n" % (_OWN.encode(), name) for name in (b"massgen_logs", b"sessions", b"chat_history"))
"""What this program keeps in a project is none of the project's files."""
OUTPUTS = (
    *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", ".cache"),
    *(".gradle", ".next", ".turbo", "build", "dist", "target", "out", "coverage", "htmlcov", _OWN),
)
"""Ignored directories into which tools write. A copy begins without them: one that cannot be written would make the
tools fail.
"""
WRITTEN_TO = ("node_modules", ".venv", "venv", "vendor")
"""Ignored directories of installed packages, beside which tools write: what a command writes there is gone with it."""
KEEP_OUTPUTS = "set `keep_outputs` for the context path to include them"
MAX_SHARED = 100
_NAMED = 5


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class BaseDirectory(_Kept):
    """A directory of the user's in the base."""

    name: str
    """Of its copy in every agent's workspace, and of its part of the base."""
    path: str
    """Where it lies, free of links."""
    writable: bool
    """Whether the run was given it with `write`, so that a patch may be applied to it."""
    files: int
    ignore: str = ""
    """What is ignored besides what its own `.gitignore` files say, as lines of one."""
    hidden: tuple[str, ...] = ()
    """What of it no agent may see."""
    shared: tuple[str, ...] = ()
    """Directories in it that are in no copy and that commands can read in their places: ignored ones, submodules."""
    copied: tuple[str, ...] = ()
    """Ignored ones that every copy has of its own, as the config says."""
    kept_outputs: tuple[str, ...] = ()
    """Patterns of build outputs that are files like others, as the config says."""
    installed: tuple[str, ...] = ()
    """Ignored ones that the setup made, which commands can read in their places."""
    installed_copies: tuple[str, ...] = ()
    """Ignored ones that the setup made, of which every copy has its own."""
    compiled: tuple[str, ...] = ()
    """Compiled libraries beside its files that are in no copy; the first of them."""
    notes: tuple[str, ...] = ()
    """What is not as one might expect, in words."""

    @property
    def rules(self) -> bytes:
        return self.ignore.encode("utf-8", "surrogateescape")

    @property
    def in_no_tree(self) -> tuple[bytes, ...]:
        """Whatever its `.gitignore` files say: in the place of what is shared copies have a link of ours."""
        return tuple(map(os.fsencode, (*self.hidden, *self.shared, *self.installed)))


class Base(_Kept):
    tree: str
    directories: tuple[BaseDirectory, ...]

    @property
    def id(self) -> TreeId:
        return TreeId(self.tree)


@dataclass(frozen=True, slots=True)
class ContextDirectory:
    """A directory that a run is given: `name` is what agents call it, `path` is absolute and free of links."""

    name: str
    path: Path
    writable: bool = False
    copied: tuple[str, ...] = ()
    kept_outputs: tuple[str, ...] = ()
    hidden: tuple[Path, ...] = ()
    """What no agent may see, wherever it lies."""
    named: str | None = None
    """What it is called on another machine that has to do without it; None: it stays here."""

    def hides(self, path: bytes) -> bool:
        place = Path(self.path, os.fsdecode(path))
        return any(place.is_relative_to(one) for one in self.hidden)


@dataclass(frozen=True, slots=True)
class Refused:
    """A directory of which no base could be taken, and why, in words."""

    name: str
    why: str


def object_stores(directories: Iterable[ContextDirectory]) -> list[Path]:
    """Those of the user's repositories, so that what is in them is not stored again."""
    around = (UserRepository.around(directory.path) for directory in directories if directory.named is None)
    return list(dict.fromkeys(store for one in around if one is not None and (store := one.objects) is not None))


def take_base(repository: PrivateRepository, given: Sequence[ContextDirectory]) -> tuple[Base | None, list[Refused]]:
    """The base of these directories, without those of which none can be taken."""
    taken: list[BaseDirectory] = []
    trees: dict[str, TreeId] = {}
    refused: list[Refused] = []
    for one in given:
        try:
            directory, trees[one.name] = _take(repository, one)
            taken.append(directory)
        except (GitFailed, TooLarge, OSError) as error:
            why = f"it {error}" if isinstance(error, TooLarge) else str(error)
            refused.append(Refused(one.name, why))
    if not taken:
        return None, refused
    base = Base(tree=repository.combined(trees), directories=tuple(taken))
    repository.own(repository.structure(base.id))
    return base, refused


def _take(repository: PrivateRepository, given: ContextDirectory) -> tuple[BaseDirectory, TreeId]:
    around = UserRepository.around(given.path)
    tracked = around.tracked(given.path) if around else None
    ignore = (around.ignored_below(given.path) if around else b"") + OWN_FILES
    hidden = [one.relative_to(given.path).as_posix() for one in given.hidden if one.is_relative_to(given.path)]
    written = repository.write_tree(
        given.path,
        tracked=[one for one in (*tracked.files, *tracked.submodules) if not given.hides(one)] if tracked else (),
        rules=TreeRules(ignore, [*map(os.fsencode, hidden)], given.kept_outputs, given.path.parts),
        all_new=tracked is not None,
    )
    directory = BaseDirectory(
        name=given.name,
        path=given.named or str(given.path),
        writable=given.writable,
        files=written.files,
        ignore=ignore.decode("utf-8", "surrogateescape"),
        hidden=tuple(hidden),
        shared=tuple(_shared(given, written)) if given.named is None else (),
        copied=given.copied,
        kept_outputs=given.kept_outputs,
        compiled=tuple(path_text(one) for one in written.compiled if not given.hides(one))[:MAX_SHARED],
        notes=tuple(_notes(written, len(tracked.absent) if tracked else 0)),
    )
    return directory, written.tree


def _shared(given: ContextDirectory, written: Written) -> Iterator[str]:
    """The ignored directories, and the repositories inside, as far as agents can name them."""
    found = 0
    for path in sorted({*written.ignored, *written.left_out.repositories}):
        try:
            name = path.decode()
        except UnicodeDecodeError:
            continue
        place = given.path / name
        if name in given.copied or place.name in OUTPUTS or _OWN in Path(name).parts or given.hides(path):
            continue
        if not place.is_dir() or place.is_symlink():
            continue
        if found == MAX_SHARED:
            return
        found += 1
        yield name


def _notes(written: Written, absent: int) -> Iterator[str]:
    left_out = written.left_out
    groups = (
        (left_out.repositories, "nested repositories, which are read-only"),
        (written.lfs_pointers, "Git LFS pointers, whose contents aren't on this machine"),
        (left_out.too_large, "left out (too large)"),
        (left_out.unreadable, "left out (not readable)"),
        (left_out.special, "left out (not regular files)"),
        (left_out.outputs, f"left out (build outputs and caches; {KEEP_OUTPUTS})"),
    )
    for paths, what in groups:
        if paths:
            yield f"{what}: {named_paths(paths)}"
    if left_out.secret:
        yield f"left out (files that often contain secrets): {len(left_out.secret)}"
    if absent:
        yield f"missing because of a sparse checkout: {absent}"


def named_paths(paths: Sequence[bytes]) -> str:
    """Name the first of these paths, and say how many more there are."""
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"{', '.join(map(path_text, paths[:_NAMED]))}{more}"


def path_text(path: bytes) -> str:
    """A path for people and models: what is no text in it is escaped."""
    text = path.decode("utf-8", "backslashreplace")
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
