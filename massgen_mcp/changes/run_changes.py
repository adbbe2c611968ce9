"""What a run keeps of the user's files: the base, and what each answer makes of it. Everything lies in one directory,
`RUN/changes`.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from pydantic import ValidationError

from massgen_mcp.changes.base import (
    KEEP_OUTPUTS,
    MAX_SHARED,
    Base,
    ContextDirectory,
    Refused,
    named_paths,
    object_stores,
    path_text,
    take_base,
)
from massgen_mcp.changes.copies import Copies, copy_installed, place_in
from massgen_mcp.changes.files import EXECUTABLE, REGULAR, KnownFiles, TooLarge, TreeRules
from massgen_mcp.changes.git import GitFailed
from massgen_mcp.changes.repository import FileChange, PrivateRepository, TreeId
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import write_durably
from massgen_mcp.workspace import openat
from massgen_mcp.workspace.snapshot import remove_tree

PATCH = "changes.patch"
"""The name of a patch, wherever one is kept."""
MAX_LAID_OUT = 2000
"""Changed files that are laid out one by one; a patch has all of them."""


@dataclass(frozen=True, slots=True)
class AnswerChanges:
    """What one agent has made of the base: a tree of the same shape, and what differs, sorted by path.

    Paths begin with the name of the directory: `NAME/src/a.py`. `notes`: what could not be taken, in words.
    """

    tree: TreeId
    files: tuple[FileChange, ...]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class RunChanges:
    """`directory`: `RUN/changes`. Blocks; safe from several threads, for different workspaces."""

    directory: Path
    repository: PrivateRepository = field(init=False)
    _known: dict[Path, dict[str, KnownFiles]] = field(default_factory=dict[Path, dict[str, KnownFiles]])

    def __post_init__(self) -> None:
        self.repository = PrivateRepository(self.directory / "objects.git")

    def base(self) -> Base | None:
        """The base of the run, if one was taken. Raises `GitFailed` if it cannot be read."""
        try:
            return Base.model_validate_json((self.directory / "base.json").read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            raise GitFailed("cannot read the record of the original files") from error

    def begin(
        self, given: Sequence[ContextDirectory], workspaces: Sequence[Path], earlier: tuple[Path, str] | None = None
    ) -> tuple[Base | None, list[Refused]]:
        """Take the base, give every workspace its own copies of it, and only then write down, durably, that this is
        done. What an earlier try left behind gives way, and what lies in a workspace where a copy belongs.

        `earlier`: a tree that an agent made in an earlier run, and that run's `changes`: the copies begin with what it
        changed, on top of the base. Raises `MassgenError` invalid_action if that cannot be.
        """
        remove_tree(self.directory)
        self.directory.mkdir(mode=0o700, parents=True)
        self.repository = PrivateRepository.create(self.repository.directory, alternates=object_stores(given))
        base, refused = take_base(self.repository, given)
        if base is not None:
            self.lay_out(base, workspaces)
            if earlier is not None:
                begun = self._with_earlier(base, RunChanges(earlier[0]), TreeId(earlier[1]))
                for workspace in workspaces:
                    self.restore(base, workspace, begun)
            write_durably(self.directory / "base.json", base.model_dump_json(indent=1).encode())
        return base, refused

    def own(self, base: Base) -> None:
        """Keep all of a base here, whatever becomes of the user's repositories. Raises `GitFailed`."""
        repository = self.repository
        repository.own([*repository.structure(base.id), *(file.blob for file in repository.files(base.id).values())])

    def make_own(self) -> None:
        """Use the objects that came here from elsewhere, and nothing else that a repository obeys. Raises `OSError`."""
        objects, fresh = self.repository.directory / "objects", self.directory / "own.git"
        if objects.is_dir():
            remove_tree(fresh)
            PrivateRepository.create(fresh)
            remove_tree(fresh / "objects")
            objects.rename(fresh / "objects")
            remove_tree(self.repository.directory)
            fresh.rename(self.repository.directory)

    def lay_out(self, base: Base, workspaces: Iterable[Path]) -> None:
        """Give every workspace its own copies of a base. Raises `GitFailed`, `OSError`."""
        copies = Copies(self.repository, base)
        for workspace in workspaces:
            self._known[workspace] = copies.lay_out(workspace)

    def _with_earlier(self, base: Base, earlier: "RunChanges", theirs: TreeId) -> TreeId:
        """The base with what an earlier run's tree changed."""
        repository = self.repository
        if (old := earlier.base()) is None:
            raise MassgenError("invalid_action", "the earlier run that this run builds on no longer exists")
        names = {one.path: one.name for one in old.directories}

        def placed(tree: TreeId) -> TreeId:
            parts = {one.name: (tree, names[one.path]) if one.path in names else (base.id, one.name) for one in places}
            return repository.combined({name: repository.part(*part) for name, part in parts.items()})

        places = base.directories
        with repository.borrowing(earlier.repository):
            found = repository.merge(placed(old.id), base.id, placed(theirs))
            if found.conflicts:
                paths = ", ".join(path_text(one.path) for one in found.conflicts)
                raise MassgenError(
                    "invalid_action", f"your files conflict with the earlier changes that this run builds on: {paths}"
                )
            changed = repository.changes(base.id, found.tree)
            repository.own([*repository.structure(found.tree), *(one.after.blob for one in changed if one.after)])
        return found.tree

    @property
    def setup(self) -> Path:
        """Where the setup of the run works, and what it made is kept as long as the run goes on."""
        return self.directory / "setup"

    @property
    def made(self) -> Path:
        """The files in which the setup works, by the names of the directories."""
        return self.setup / "files"

    def found_in_setup(self, base: Base) -> dict[str, tuple[str, ...]]:
        """The ignored directories that the setup made, by the names of the directories. Raises `GitFailed`, `OSError`,
        `TooLarge`.
        """
        found: dict[str, tuple[str, ...]] = {}
        for directory in base.directories:
            before = self.repository.part(base.id, directory.name)
            rules = TreeRules(directory.rules, kept=directory.kept_outputs)
            written = self.repository.write_tree(self.made / directory.name, like=[before], rules=rules)
            names = [os.fsdecode(path) for path in written.ignored if _is_text(path)]
            found[directory.name] = tuple(name for name in names if name not in directory.copied)[:MAX_SHARED]
        return found

    def install(
        self, base: Base, found: Mapping[str, tuple[str, ...]], workspaces: Sequence[Path], *, copied: bool
    ) -> Base:
        """Have every workspace find what the setup made: by links to it, or `copied`. Nobody works in them yet. Returns
        the base that knows of it, written down durably.
        """
        from massgen_mcp.sandbox import INSTALLED  # what only reads runs needs none of it

        kind = "installed_copies" if copied else "installed"
        directories = tuple(one.model_copy(update={kind: found.get(one.name, ())}) for one in base.directories)
        base = base.model_copy(update={"directories": directories})
        for workspace in workspaces:
            for directory in directories:
                copy = workspace / directory.name
                for below in found.get(directory.name, ()):
                    remove_tree(copy / below)
                copy_installed(directory, copy, self.made)
                for below in directory.installed:
                    if (place := place_in(copy, below)) is not None:
                        place.symlink_to(f"{INSTALLED}/{directory.name}/{below}")
        write_durably(self.directory / "base.json", base.model_dump_json(indent=1).encode())
        return base

    def outcome(self, base: Base, workspace: Path) -> AnswerChanges:
        """What the copies in a workspace are now. Raises `GitFailed`, and `OSError` if they cannot be read."""
        repository = self.repository
        known = self._known.setdefault(workspace, {})
        trees: dict[str, TreeId] = {}
        notes: list[str] = []
        for directory in base.directories:
            before = repository.part(base.id, directory.name)
            place = workspace / directory.name
            if place.is_symlink() or not place.is_dir():
                raise GitFailed(f"{directory.name} is no longer a directory")
            try:
                written = repository.write_tree(
                    place,
                    like=[before],
                    rules=TreeRules(directory.rules, directory.in_no_tree, directory.kept_outputs),
                    known=known.setdefault(directory.name, KnownFiles()),
                )
            except TooLarge as error:
                raise GitFailed(f"{directory.name} {error}; delete what you don't need") from error
            trees[directory.name] = written.tree
            left_out = written.left_out
            for paths, what in (
                (left_out.secret, "files that often contain secrets"),
                (left_out.too_large, "files that are too large"),
                (left_out.repositories, "nested repositories"),
                (left_out.unreadable, "not readable"),
                (left_out.outputs, f"build outputs and caches; {KEEP_OUTPUTS}"),
            ):
                if paths:
                    notes.append(f"left out of {directory.name} ({what}): {named_paths(paths)}")
        tree = repository.combined(trees)
        files = repository.changes(base.id, tree)
        repository.own(file.blob for change in files for file in (change.before, change.after) if file is not None)
        return AnswerChanges(tree, files, tuple(notes))

    def lay_out_changed(self, changes: Iterable[FileChange], into: Path) -> None:
        """Lay out the regular files that are changed or new, the first `MAX_LAID_OUT` of them."""
        changed = {
            change.path: change.after
            for change in changes
            if change.after is not None and change.after.mode in (REGULAR, EXECUTABLE)
        }
        if changed:
            first = dict(islice(changed.items(), MAX_LAID_OUT))
            self.repository.check_out(self.repository.tree_of(first), into)

    def restore(self, base: Base, workspace: Path, tree: TreeId) -> None:
        """Make the copies in a workspace be `tree` again. What is ignored in them stays."""
        repository = self.repository
        differing = repository.changes(self.outcome(base, workspace).tree, tree)
        with openat.closing(os.open(workspace, openat.DIRECTORY_FLAGS)) as root:
            for change in differing:
                gone = change.earlier_path if change.after is not None else change.path
                if gone is not None:
                    _remove(root, os.fsdecode(gone))
        wanted = {change.path: change.after for change in differing if change.after is not None}
        if wanted:
            repository.check_out(repository.tree_of(wanted), workspace)


def _remove(root: int, path: str) -> None:
    parent, _, name = path.rpartition("/")
    with suppress(FileNotFoundError), openat.closing(openat.best_opener()(root, parent, openat.DIRECTORY_FLAGS)) as fd:
        openat.remove(fd, name)


def _is_text(path: bytes) -> bool:
    with suppress(UnicodeDecodeError):
        return path.decode().isprintable()
    return False
