"""The copies of the caller's directories that the agents of one run work on, and what becomes of them, as events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from massgen_mcp.changes.base import WRITTEN_TO, Base, ContextDirectory, Refused
from massgen_mcp.changes.git import GitFailed, clone, is_address
from massgen_mcp.changes.repository import TreeId
from massgen_mcp.changes.run_changes import RunChanges
from massgen_mcp.config.adjusted import with_places
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import BegunWith, Changes, CopiedDirectory, public_agent_name
from massgen_mcp.events.run import BaseTaken
from massgen_mcp.runs.engine import EarlierChanges, FrozenRequest, RunFiles
from massgen_mcp.runs.patches.application import changed_file
from massgen_mcp.runs.patches.given import SINGLE_FILE, UPLOADED, given_directories, named_contexts
from massgen_mcp.sandbox import WORKSPACE, VisiblePath
from massgen_mcp.workspace.snapshot import remove_tree

NO_COPY = (
    "cannot copy {path}, so agents couldn't change anything there: {why}. No model was called. Fix this problem, "
    "use another directory, or set permission: read for this one"
)
MAX_LISTED = 200
"""Changed files that an event names one by one."""


@dataclass(frozen=True, slots=True)
class WorkingCopies:
    """All methods block."""

    run: RunFiles
    kept: RunChanges
    base: Base

    @property
    def names(self) -> tuple[str, ...]:
        """Of the directories in every workspace."""
        return tuple(directory.name for directory in self.base.directories)

    @property
    def shared(self) -> tuple[VisiblePath, ...]:
        """What is in no copy, such as what git ignores, as the caller has it: its place in a workspace."""
        return tuple(
            VisiblePath(
                Path(directory.path, below),
                f"{WORKSPACE}/{directory.name}/{below}",
                layered=Path(below).name in WRITTEN_TO,
            )
            for directory in self.base.directories
            for below in directory.shared
            if below not in (*directory.installed, *directory.installed_copies)
        )

    @property
    def installed(self) -> tuple[VisiblePath, ...]:
        """What the setup made and is in no copy: its place in a workspace."""
        return tuple(
            VisiblePath(self.kept.made / directory.name / below, f"{WORKSPACE}/{directory.name}/{below}", layered=True)
            for directory in self.base.directories
            for below in directory.installed
        )

    def changes(self, agent: str) -> Changes:
        """What an agent's copies are now, without a patch. Raises `GitFailed`, `OSError`."""
        outcome = self.kept.outcome(self.base, self.run.workspace_of(agent))
        files = [changed_file(change) for change in outcome.files]
        return Changes(
            tree=outcome.tree,
            files=tuple(files[:MAX_LISTED]),
            more=max(0, len(files) - MAX_LISTED),
            added=sum(file.added or 0 for file in files),
            removed=sum(file.removed or 0 for file in files),
            notes=outcome.notes,
        )

    def write_patch(self, changes: Changes, into: Path) -> Changes:
        """Write the whole difference to a file; none is left there where nothing is changed. Returns the changes with
        that. Raises `GitFailed`, `OSError`.
        """
        if not changes.files:
            into.unlink(missing_ok=True)
            return changes
        size = self.kept.repository.write_patch(self.base.id, TreeId(changes.tree), into)
        kept = into.relative_to(self.run.path).as_posix()
        return changes.model_copy(update={"patch": kept, "patch_bytes": size})

    def lay_out_changed(self, changes: Changes, into: Path) -> None:
        """Lay out the files that are changed or new."""
        differing = self.kept.repository.changes(self.base.id, TreeId(changes.tree))
        self.kept.lay_out_changed(differing, into)

    def restore(self, agent: str, changes: Changes) -> None:
        """Make an agent's copies be what they were when it gave the answer with these changes."""
        self.kept.restore(self.base, self.run.workspace_of(agent), TreeId(changes.tree))


def prepare_copies(
    run: RunFiles, request: FrozenRequest, environ: Mapping[str, str], *, begun: bool, hidden: tuple[Path, ...] = ()
) -> tuple[WorkingCopies | None, BaseTaken | None]:
    """The copies of a run, which are made if the run has not `begun`, and what is to be told of them. None: there are
    none, or nothing to tell. `hidden`: what no agent may see, besides the run's own directory.

    Raises `MassgenError` run_damaged, as `RunChanges.begin`, invalid_action where a directory that agents are to change
    cannot be copied, `OSError`.
    """
    config, earlier = request.config, request.begins_with
    kept = RunChanges(run.changes)
    try:
        base = kept.base()
    except GitFailed as damage:
        raise MassgenError("run_damaged", str(damage)) from damage
    workspaces = [
        run.workspace_of(public_agent_name(place))
        for place, agent in enumerate(config.agents)
        if config.has_workspace(agent)
    ]
    if base is not None:
        if not begun and earlier is None:  # it came with the start
            for workspace in workspaces:
                workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
            kept.lay_out(base, workspaces)
        return WorkingCopies(run, kept, base), _base_event(base, [], earlier)
    if not begun and workspaces:
        _clone(run, config, environ)
    given, files = given_directories(config, (*hidden, run.path), _clones(run)) if workspaces else ([], [])
    if begun or not (given or files):
        return None, None
    for workspace in workspaces:
        workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        begins = earlier and (Path(earlier.directory), earlier.tree)
        base, refused = kept.begin(given, workspaces, begins)
    except GitFailed as failed:
        base, refused = None, [Refused(one.name, str(failed)) for one in given]
    finally:
        remove_tree(_clones(run))
    _require_copies([one for one in given if one.writable], refused)
    taken = _base_event(base, [*refused, *(Refused(name, SINGLE_FILE) for name in files)], earlier)
    return WorkingCopies(run, kept, base) if base is not None else None, taken


def _require_copies(writable: Sequence[ContextDirectory], refused: Sequence[Refused]) -> None:
    """Refuse a run that is to change what cannot be copied: its agents could only promise the change."""
    whys = {one.name: one.why for one in refused}
    for one in writable:
        if (why := whys.get(one.name)) is not None:
            raise MassgenError("invalid_action", NO_COPY.format(path=one.named or one.path, why=why))


def prepare_base(run: RunFiles, config: Config, hidden: tuple[Path, ...]) -> WorkingCopies | None:
    """The base alone, without copies; None where there is nothing to take one of. Raises `GitFailed`, `OSError`."""
    given, _ = given_directories(config, (*hidden, run.path))
    kept = RunChanges(run.changes)
    base, _ = kept.begin(given, [])
    return None if base is None else WorkingCopies(run, kept, base)


def _clones(run: RunFiles) -> Path:
    return run.private_of("clones")


def _clone(run: RunFiles, config: Config, environ: Mapping[str, str]) -> None:
    """Raises `MassgenError` invalid_action: without its files the run would be another one."""
    try:
        for context, name in named_contexts(config):
            if is_address(context.path):
                clone(context.path, _clones(run) / name, environ)
    except GitFailed as failed:
        raise MassgenError("invalid_action", str(failed)) from failed


def with_originals(run: RunFiles, request: FrozenRequest, copies: WorkingCopies | None) -> FrozenRequest:
    """The request with places on this machine for directories that lie elsewhere: there they are as the base has them.
    Raises `GitFailed`, `OSError`.
    """
    originals = run.private_of("context")
    away = {
        context.path: str(originals / name)
        for context, name in named_contexts(request.config)
        if context.path.startswith(UPLOADED) or is_address(context.path)
    }
    for place in away.values():
        Path(place).mkdir(mode=0o700, parents=True, exist_ok=True)
    if away and copies is not None:
        copies.kept.repository.check_out(copies.base.id, originals)
    return replace(request, config=with_places(request.config, lambda path: away.get(path, path)))


def _base_event(base: Base | None, refused: Sequence[Refused], earlier: EarlierChanges | None) -> BaseTaken:
    directories = [
        CopiedDirectory(name=one.name, path=one.path, writable=one.writable, files=one.files, notes=one.notes)
        for one in (base.directories if base is not None else ())
    ]
    sentences = [f"context/{one.name} is read-only: {one.why}" for one in refused]
    begins = earlier and base and BegunWith(run_id=earlier.run_id, agent=earlier.agent, files=earlier.files)
    tree = base and base.tree
    return BaseTaken(tree=tree, directories=tuple(directories), refused=tuple(sentences), begins_with=begins)
