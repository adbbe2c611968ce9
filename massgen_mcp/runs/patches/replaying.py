"""The files of a run once more, without its patch and with it, so that others can be asked the same of them."""

from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.runs.patches.applying import RunPatch, faults_as_errors
from massgen_mcp.runs.view.run_view import RunView


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
