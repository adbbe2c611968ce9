"""What an earlier run changed, taken up again: by a turn of its session that goes on with it, where nobody has applied
it, with the lines of it that the question comments on; and laid out without it and with it, so that others can be asked
the same. Whatever is wrong is refused before the run.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from massgen_mcp.changes.apply import conflicts
from massgen_mcp.changes.base import path_text
from massgen_mcp.changes.choosing import Patch, lines_of, named
from massgen_mcp.changes.repository import Hunk, PrivateRepository
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.run_state.agents import find_agent
from massgen_mcp.runs.engine import EarlierChanges
from massgen_mcp.runs.patches.applying import RunPatch, faults_as_errors
from massgen_mcp.runs.view.run_view import RunView

if TYPE_CHECKING:  # what reads runs needs nothing of how one is built
    from massgen_mcp.request.build import RunRequest

WINNER = "winner"
"""Stands for the agent that won, whatever its name."""
MAX_COMMENTS = 100
AROUND = 3
"""Lines before and after the one that is meant."""
LINE_CHARACTERS = 200
_COMMENT = re.compile(r"^([^\s:][^:\n]*):([0-9]{1,9}):(?=\s|$)", re.MULTILINE)


def find_earlier_changes(
    whose: str, request: "RunRequest", config: Config, newest_first: Iterable[RunView]
) -> EarlierChanges:
    """Return the changes that the request continues: those of the first of its session's ended turns that changed
    files, or of the turn that `whose`, its `changes_of`, names. Blocks.

    Raises `MassgenError` invalid_arguments, disk_full, store_unavailable.
    """
    run_id, agent = whose.split("/", 1) if whose.startswith("run-") and "/" in whose else (None, whose)
    turns = (view for view in newest_first if run_id in (None, view.row.run_id))
    try:
        return _earlier_changes(agent, request, config, _changed(turns))
    except MassgenError as error:
        if error.code in ("disk_full", "store_unavailable"):
            raise
        raise MassgenError("invalid_arguments", str(error)) from error


def _earlier_changes(whose: str, request: "RunRequest", config: Config, view: RunView) -> EarlierChanges:
    run = view.snapshot
    agent = None if whose == WINNER else find_agent(run.agents, whose)
    name = run.author or WINNER if agent is None else run.agents[agent].info.id
    made = RunPatch.of(
        view.row.run_id, view.directory, run.best_changes if agent is None else run.agents[agent].latest_changes
    )
    if made is None:
        raise MassgenError("invalid_arguments", f"{name} has changed none of your files in {view.row.run_id}")
    repository, patch = made.changes.repository, made.patch
    with faults_as_errors():
        changes = repository.changes(patch.base, patch.theirs)
        _require_given({os.fsdecode(one.path.partition(b"/")[0]) for one in changes}, patch, config)
        if refused := conflicts(repository, patch):
            why = "; ".join(f"{path_text(os.fsencode(one.path))}: {one.reason}" for one in refused[:10])
            raise MassgenError("invalid_arguments", f"{name}'s changes in {made.run_id} no longer apply: {why}")
        commented = "\n\n".join(_commented(repository, patch, request.question))
    place = str(made.changes.directory)
    return EarlierChanges(made.run_id, name, place, patch.theirs, len(changes), request.redactor.text(commented))


def _changed(views: Iterable[RunView]) -> RunView:
    for view in views:
        if view.damage is not None:
            raise view.damage
        run = view.snapshot
        made = (run.best_changes, *(one.latest_changes for one in run.agents.values()))
        if any(one is not None and one.count for one in made):
            return view
    raise MassgenError("invalid_arguments", "no finished turn of this session has changed your files")


def _require_given(names: set[str], patch: Patch, config: Config) -> None:
    """All that was changed has to be there again."""
    contexts = config.orchestrator.context_paths if config.orchestrator.enable_filesystem else ()
    given = {Path(one.path).resolve() for one in contexts}
    if missing := [one.path for one in patch.places if one.name in names and Path(one.path) not in given]:
        raise MassgenError("invalid_arguments", f"context_paths lacks {', '.join(missing)}, which the changes need")


def _commented(repository: PrivateRepository, patch: Patch, question: str) -> Iterator[str]:
    """What each line `FILE:LINE: TEXT` of the question means."""
    found = _COMMENT.findall(question)
    if len(found) > MAX_COMMENTS:
        raise MassgenError(
            "invalid_arguments", f"you commented on {len(found)} lines; at most {MAX_COMMENTS} are allowed"
        )
    if not found:
        return
    files = repository.files(patch.theirs)
    changed = {one.path: one for one in repository.changes(patch.base, patch.theirs)}
    for path, number in found:
        places = (named(path, patch.places), *(os.fsencode(f"{one.name}/{path}") for one in patch.places))
        place = next((one for one in places if one in files), None)
        if place is None:
            raise MassgenError(
                "invalid_arguments",
                f"{path[:200]}:{number}: these changes don't include this file; indent the line if it isn't a comment",
            )
        lines = lines_of(repository.content(files[place]))
        if not 0 < int(number) <= len(lines):
            raise MassgenError("invalid_arguments", f"{path[:200]}:{number}: the file has {len(lines)} lines")
        change = changed.get(place)
        hunks: Sequence[Hunk] = ()
        before: list[bytes] = []
        if change is not None and change.added is not None and change.after is not None:
            hunks = [Hunk(slice(0, 0), slice(0, len(lines)))]
            if change.before is not None:
                hunks = repository.hunks(change.before, change.after, around=0)
                before = lines_of(repository.content(change.before))
        yield "\n".join([f"{path_text(place)}:{number}", *_excerpt(lines, before, hunks, int(number) - 1)])


def _excerpt(lines: Sequence[bytes], before: Sequence[bytes], hunks: Sequence[Hunk], meant: int) -> Iterator[str]:
    added = {at for hunk in hunks for at in range(hunk.after.start, hunk.after.stop)}
    removed = {hunk.after.start: before[hunk.before][: 2 * AROUND] for hunk in hunks}
    for at in range(max(0, meant - AROUND), min(len(lines), meant + AROUND + 1)):
        yield from (f"-{'':7} {_line_text(line)}" for line in removed.get(at, ()))
        yield f"{'+' if at in added else ' '}{at + 1:7} {_line_text(lines[at])}"


def _line_text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\r\n")[:LINE_CHARACTERS]


@dataclass(frozen=True, slots=True)
class LaidOut:
    """`before`, `after`: the directories without and with the patch, in their order; `checks`: those that passed."""

    before: tuple[Path, ...]
    after: tuple[Path, ...]
    checks: tuple[str, ...]


def laid_out(view: RunView, place: Path) -> LaidOut | None:
    """Below `place`; safe to repeat. None for a run that changed nothing, or whose final files passed no check. Blocks.
    Raises `MassgenError` run_damaged, store_unavailable.
    """
    final = view.snapshot.checked_final
    checks = tuple(one.command for one in final.outcomes if one.result == "passed") if final else ()
    made = RunPatch.of(view.row.run_id, view.directory, view.snapshot.best_changes)
    if made is None or not checks:
        return None
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    with faults_as_errors():
        made.changes.repository.check_out(made.patch.base, place / "before")
        made.changes.repository.check_out(made.patch.theirs, place / "after")
    names = [one.name for one in made.patch.places]
    before, after = (tuple(place / state / name for name in names) for state in ("before", "after"))
    return LaidOut(before, after, checks)
