"""A run's patch and the person's directories: brought in, put on a branch, taken back. One at a time on this machine.

Before anything else, what a process that ended in the middle has left behind is settled: see `changes.transaction`.
"""

import os
import secrets
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from massgen_mcp.changes.apply import ApplyPlan, make_branch, plan, plan_branch
from massgen_mcp.changes.apply_records import AppliedRecord, AppliedRecords, Intent, IntentPart, permissions_of_removed
from massgen_mcp.changes.base import BaseDirectory, path_text
from massgen_mcp.changes.choosing import Patch
from massgen_mcp.changes.files import TooLarge
from massgen_mcp.changes.git import GitFailed, GitUnusable, is_address
from massgen_mcp.changes.obstacles import Obstacle
from massgen_mcp.changes.repository import PrivateRepository, TreeId
from massgen_mcp.changes.run_changes import RunChanges
from massgen_mcp.changes.transaction import ChangedMeanwhile, Settled, Unsettled, perform, settle
from massgen_mcp.errors import MassgenError, storage_error
from massgen_mcp.events.parts import Changes
from massgen_mcp.home import Home
from massgen_mcp.run_state.agents import find_agent
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.engine.locks import acquire
from massgen_mcp.runs.patches.application import Application, ApplyState, note_on, patch_command
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.views.checks import checks_state, state_of_unfinished
from massgen_mcp.views.plain_text import preview


@dataclass(frozen=True, slots=True)
class ChangedText:
    """A file of the person's as an apply finds it and leaves it. `before`: None for a new one; `after` is empty for one
    that goes.
    """

    path: Path
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class RunPatch:
    """What an answer of a run makes of the directories that it was given."""

    run_id: str
    changes: RunChanges
    patch: Patch

    @classmethod
    def of(cls, run_id: str, files: RunFiles, made: Changes | None) -> "RunPatch | None":
        """None if it changes nothing. Raises `MassgenError` run_damaged."""
        changes = RunChanges(files.changes)
        try:
            base = changes.base()
        except GitFailed as damage:
            raise MassgenError("run_damaged", str(damage)) from damage
        if made is None or base is None or not made.count:
            return None
        return cls(run_id, changes, Patch(base.directories, base.id, TreeId(made.tree)))

    def difference(self, planned: Application, most_bytes: int) -> tuple[bytes, int]:
        """The first bytes of what an application changes, as a patch, and the size of the whole. Raises `MassgenError`
        store_unavailable, disk_full.
        """
        if planned.before is None or planned.after is None:
            return b"", 0
        try:
            with tempfile.TemporaryDirectory(prefix="shown.", dir=self.changes.directory) as directory:
                file = Path(directory) / "patch"
                size = self.changes.repository.write_patch(planned.before, planned.after, file)
                with file.open("rb") as patch:
                    return patch.read(most_bytes), size
        except GitFailed as error:
            raise MassgenError("store_unavailable", f"cannot show the changes: {error}") from error
        except OSError as error:
            raise storage_error("cannot show the changes", error) from error

    def texts(self, planned: Application) -> list[ChangedText]:
        """What an application changes, without files that are no text, and those for which no room is left. Raises
        `MassgenError` store_unavailable.
        """
        places = {place.name: Path(place.path) for place in self.patch.places}
        found, room = list[ChangedText](), MAX_SHOWN_BYTES
        with faults_as_errors(), self.changes.repository.reading() as content:
            for change in planned.changes:
                before, after = (content(file) if file else b"" for file in (change.before, change.after))
                room -= len(before) + len(after)
                if change.added is None or room < 0:
                    continue
                name, _, path = os.fsdecode(change.path).partition("/")
                was = before.decode(errors="replace") if change.before else None
                found.append(ChangedText(places[name] / path, was, after.decode(errors="replace")))
        return found


PATIENCE_SECONDS = 20.0
"""So long an apply waits for another one to end."""
MAX_SHOWN_BYTES = 4 * 1024 * 1024
"""Of all files that are shown before and after."""

SUBJECT_CHARACTERS = 72
"""Of the question in a commit's message."""


_Earlier = tuple[tuple[Settled, ...], tuple[str, ...]]
"""What was found half-done: `settled` and `unsettled`, as `Application` has them."""


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """Changes of a run, and what to do with them: merge them into the caller's directories, put them on a new `branch`,
    or undo the last merge.
    """

    dry_run: bool
    """Show what would happen, and change nothing."""
    agent: str | None = None
    """The agent whose latest answer is meant, or its unfinished copy if it was dropped; None: the winner. A tie has
    none.
    """
    paths: Sequence[str] = ()
    """The only files or hunks that are wanted; empty: all."""
    branch: str | None = None
    undo: bool = False
    directory: Path | None = None
    """The directory of this machine that stands for the run's only one."""


def apply_run(home: Home, view: RunView, request: ApplyRequest) -> Application:
    """Do what the request asks for. Raises `MassgenError` not_finished, and as `apply_patch`."""
    agent, dry_run = request.agent, request.dry_run
    if not view.ended:
        raise MassgenError("not_finished", f"run {view.row.run_id} is {view.state}; wait until it ends")
    run = view.snapshot
    if agent is None and not request.undo and run.work_done.undecided:
        raise MassgenError("invalid_action", f"{run.work_done.undecided}; nothing was applied")
    changes = run.best_changes if agent is None else run.agents[find_agent(run.agents, agent)].latest_changes
    made = RunPatch.of(view.row.run_id, view.directory, changes)
    if made is None and view.damage is not None:
        raise view.damage
    if made is None:
        nothing = f"run {view.row.run_id} has changed none of your files"
        raise MassgenError("invalid_action", nothing if agent is None else f"{agent} has changed none of your files")
    if command := patch_command(run, changes, view.directory.path):
        message = (
            "the run had no write permission for the changed directory, so massgen won't apply the changes; "
            "apply them by hand:"
        )
        raise MassgenError("invalid_action", f"{message} {command}")
    made = replace(made, patch=replace(made.patch, places=_placed(made.patch.places, request.directory)))
    if request.undo:
        return undo_patch(home, made, dry_run=dry_run)
    if request.branch is not None:
        subject = preview(view.row.question, SUBJECT_CHARACTERS)
        message = f"{subject}\n\nRun: {made.run_id}"
        application = branch_patch(home, made, request.branch, message, dry_run=dry_run, paths=request.paths)
    else:
        application = apply_patch(home, made, dry_run=dry_run, paths=request.paths)
    return with_checks(application, made, run)


def _placed(places: Sequence[BaseDirectory], directory: Path | None) -> tuple[BaseDirectory, ...]:
    """The directories of a run, where they are on this machine."""
    if directory is not None and len(places) > 1:
        raise MassgenError("invalid_arguments", "this run has several directories, but --directory replaces only one")
    if directory is None and (away := [one.path for one in places if is_address(one.path)]):
        raise MassgenError("invalid_arguments", f"pass your clone of {away[0]} with --directory DIR")
    if directory is None:
        return tuple(places)
    return tuple(one.model_copy(update={"path": str(directory.resolve())}) for one in places)


def with_checks(application: Application, made: RunPatch, run: RunState) -> Application:
    """With how the checks of these files stand, the final ones or those of unfinished files, and whether they ran on
    exactly these changes.
    """
    theirs, best = made.patch.theirs, run.best_changes
    left = {one.changes.tree: one.agent for one in run.dropped if one.changes is not None}.get(theirs)
    state = checks_state(run) if left is None else state_of_unfinished(run, left)
    if not state:
        return application
    if left is None and (best is None or theirs != best.tree):
        state = "The checks did not run on exactly these changes, only on the winner's files"
    elif application.left_out:
        author = "the winner" if left is None else "the agent"
        state = f"The checks did not run on exactly these changes, only on all changes of {author}. {state}"
    return replace(application, checks=state)


def apply_patch(home: Home, made: RunPatch, *, dry_run: bool, paths: Sequence[str] = ()) -> Application:
    """Bring the patch into the directories as they are now: all that was chosen of it, or nothing.

    Raises `MassgenError` invalid_arguments, invalid_action, disk_full, store_unavailable, run_damaged.
    """
    with _alone(home, made) as earlier:
        AppliedRecords(made.changes.directory).read()  # what could not be written down is not done
        found, parts = plan(made.changes.repository, made.patch, paths=paths)
        application = _of(found, earlier)
        if dry_run or application.state != "clean":
            return application
        _keep_for_undo(made.changes.repository, found)
        record = AppliedRecord(
            id=secrets.token_hex(8),
            time=time.time(),
            before=found.before,
            after=found.after,
            permissions=permissions_of_removed(parts),
        )
        return _carried_out(home, made, parts, record, replace(application, state="applied"))


def _keep_for_undo(repository: PrivateRepository, found: ApplyPlan) -> None:
    """What it takes to take it back is kept in the run, whatever the person does to the repository meanwhile."""
    files = [file for change in found.changes for file in (change.before, change.after) if file is not None]
    trees = [one for tree in (found.before, found.after) for one in repository.structure(tree)]
    repository.own([*trees, *(file.blob for file in files)])


def undo_patch(home: Home, made: RunPatch, *, dry_run: bool) -> Application:
    """Take back what was applied last, and keep what was changed since. Raises as `apply_patch`."""
    with _alone(home, made) as earlier:
        kept = AppliedRecords(made.changes.directory)
        records = kept.read()
        if not records and kept.exist:  # an undo that had to be finished first, or the same command once more
            return Application("unchanged", settled=earlier[0], unsettled=earlier[1])
        if not records:
            raise MassgenError("invalid_action", "none of this run's changes are applied to your working tree")
        last = records[-1]
        back = replace(made.patch, base=TreeId(last.after), theirs=TreeId(last.before))
        found, parts = plan(made.changes.repository, back, everything=True, permissions=last.permissions)
        application = _of(found, earlier)
        if dry_run or application.state == "conflicts":
            return application
        return _carried_out(home, made, parts, last, replace(application, state="undone"))


def branch_patch(
    home: Home, made: RunPatch, branch: str, message: str, *, dry_run: bool, paths: Sequence[str] = ()
) -> Application:
    """Put the patch on a new branch of the person's repository, as one commit. Raises as `apply_patch`."""
    repository = made.changes.repository
    with _alone(home, made) as earlier:
        found, new = plan_branch(repository, made.patch, branch, paths=paths)
        application = replace(_of(found, earlier), branch=branch)
        if dry_run or application.state != "clean":
            return application
        return replace(application, state="applied", commit=make_branch(repository, new, message))


def _of(found: ApplyPlan, earlier: _Earlier) -> Application:
    state: ApplyState = "conflicts" if found.refused else "clean" if found.changes else "unchanged"
    return Application(
        state,
        found.changes,
        found.refused,
        found.left_out,
        found.before,
        found.after,
        settled=earlier[0],
        unsettled=earlier[1],
    )


def _carried_out(
    home: Home, made: RunPatch, parts: tuple[IntentPart, ...], record: AppliedRecord, done: Application
) -> Application:
    facts = {
        "run_id": made.run_id,
        "changes": str(made.changes.directory),
        "record": record.model_dump(),
        "undo": done.state == "undone",
    }
    try:
        with made.changes.repository.reading() as contents:
            file = _intents(home) / f"{secrets.token_hex(8)}.json"
            settled = perform(Intent(parts, facts), file, contents, _note)
    except ChangedMeanwhile as error:
        return replace(done, state="conflicts", changes=(), refused=(Obstacle(error.path, str(error)),))
    return replace(done, kept=settled.kept) if settled is not None else done


def _note(intent: Intent) -> None:
    """What has happened is written down in the run. Safe to repeat. A record that was damaged meanwhile stays so: it
    keeps nobody from applying another run.
    """
    records = AppliedRecords(Path(intent.facts["changes"]))
    record = AppliedRecord.model_validate(intent.facts["record"])
    with suppress(MassgenError):
        if intent.facts["undo"]:
            records.drop(record)
        else:
            records.add(record)


def _intents(home: Home) -> Path:
    return home.path / "applying"


@contextmanager
def _alone(home: Home, made: RunPatch) -> Generator[_Earlier]:
    """While nobody else of this user applies anything; with what was settled before, which an error tells as well. What
    cannot be settled is in nobody's way but that of an apply to the same files.
    """
    settled: list[Settled] = []
    unsettled: list[str] = []
    try:
        with faults_as_errors(), _locked(home):
            for file in sorted(_intents(home).glob("[!.]*.json")):
                try:
                    settled += filter(None, [settle(file, _note)])
                except Unsettled as error:
                    if any(_overlap(root, place.path) for root in error.roots for place in made.patch.places):
                        raise
                    unsettled.append(str(error))
                except MassgenError as damage:
                    if damage.code != "store_unavailable":
                        raise
                    unsettled.append(str(damage))
            yield tuple(settled), tuple(unsettled)
    except MassgenError as error:
        if (note := note_on(settled, unsettled)) is None:
            raise
        raise MassgenError(error.code, f"{error}. {note}") from error


def _overlap(one: str, other: str) -> bool:
    return Path(one).is_relative_to(other) or Path(other).is_relative_to(one)


@contextmanager
def _locked(home: Home) -> Generator[None]:
    home.ensure()
    _intents(home).mkdir(mode=0o700, exist_ok=True)
    lock = acquire(home.path / "apply.lock", patience=PATIENCE_SECONDS)
    if lock is None:
        raise MassgenError("invalid_action", "another apply is running; try again when it has finished")
    try:
        yield
    finally:
        os.close(lock)


@contextmanager
def faults_as_errors() -> Generator[None]:
    try:
        yield
    except GitUnusable as error:
        raise MassgenError("invalid_action", str(error)) from error
    except Unsettled as error:
        raise MassgenError("store_unavailable", str(error)) from error
    except (GitFailed, TooLarge) as error:
        raise MassgenError("store_unavailable", f"nothing was changed: {error}") from error
    except OSError as error:
        where = f": {path_text(os.fsencode(error.filename))}" if isinstance(error.filename, str) else ""
        raise storage_error(f"nothing was changed{where}", error) from error
